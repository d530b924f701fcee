#pragma once

#include <atomic>

// This program has its own openat(2), mkdirat(2) and fchmodat(2), with which a test weakens the
// functions of coil::fs, or acts between two of their calls.

namespace fs_test {

/// openat() ignores O_NOFOLLOW and O_EXCL.
inline constinit std::atomic<bool> follows_links{false};

/// Called before and after each openat() that ignores these flags.
inline constinit std::atomic<void (*)(const char* name)> around_openat{nullptr};

/// Called by openat() with O_PATH before the system call, with the name.
inline constinit std::atomic<void (*)(const char* name)> before_open_path{nullptr};

/// Called by mkdirat() before the system call, with the name.
inline constinit std::atomic<void (*)(int directory, const char* name)> before_mkdirat{nullptr};

/// Called by the next fchmodat() before the C library's function.
inline constinit std::atomic<void (*)()> before_fchmodat{nullptr};

} // namespace fs_test
