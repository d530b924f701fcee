#pragma once

#include <coil/uring/abi.hpp>

#include <cerrno>
#include <cstdint>

#include <sys/syscall.h>

namespace coil::uring::detail {

#ifndef SYS_openat2
constexpr long SYS_openat2 = 437;
#endif

template <class T>
int checked(T result) noexcept {
    return result < 0 ? -errno : static_cast<int>(result);
}

template <class T>
T* pointer(std::uint64_t address) noexcept {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

inline const char* path(const sqe& request) noexcept { return pointer<const char>(request.addr); }

/// The system call that executes an entry.
using system_call = int (*)(const sqe&);

/// The system call of an operation that waits for no other process, and for a device at most
/// because it changes a directory or metadata; null for all other operations.
system_call quick_call_for(const sqe& request) noexcept;

} // namespace coil::uring::detail
