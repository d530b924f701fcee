#pragma once

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace coil_test {

/// Whether this process may use io_uring (./dev test --kernel epoll forbids it). A set-up with a
/// bad address tells without making anything.
inline bool io_uring_is_allowed() noexcept {
    constexpr long io_uring_setup = 425;
    return ::syscall(io_uring_setup, 1, nullptr) >= 0 || (errno != EPERM && errno != ENOSYS);
}

} // namespace coil_test

/// For a test of what only io_uring has.
#define COIL_SKIP_WITHOUT_IO_URING(why)                                                            \
    if (!coil_test::io_uring_is_allowed()) {                                                       \
        GTEST_SKIP() << "without io_uring: " << (why);                                             \
    }                                                                                              \
    static_assert(true)
