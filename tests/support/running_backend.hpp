#pragma once

#include <coil/uring/backend.hpp>
#include <coil/uring/epoll_backend.hpp>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>

namespace coil_test {

/// Whether this process may use io_uring. A setup with an invalid address determines it without
/// creating a ring.
inline bool io_uring_is_allowed() noexcept {
    constexpr long io_uring_setup = 425;
    return ::syscall(io_uring_setup, 1, nullptr) >= 0 || (errno != EPERM && errno != ENOSYS);
}

/// Whether the tests run on the epoll backend: COIL_BACKEND=epoll, or io_uring is forbidden, as
/// with ./dev test --backend epoll. (A test that forbids it affects its own process only.)
inline bool on_epoll() {
    static const bool forbidden = !io_uring_is_allowed();
    const char* const name = std::getenv("COIL_BACKEND");
    return forbidden || (name != nullptr && std::string_view(name) == "epoll");
}

/// Creates the default backend of a context, for test backends that wrap it.
inline std::unique_ptr<coil::uring::backend> make_running_backend() {
    return on_epoll() ? coil::uring::make_epoll_backend() : coil::uring::make_linux_backend();
}

} // namespace coil_test

/// For tests of features that only io_uring has.
#define COIL_SKIP_ON_EPOLL(why)                                                                    \
    if (coil_test::on_epoll())                                                                     \
    GTEST_SKIP() << "the epoll backend: " << (why)

/// For tests that request io_uring explicitly.
#define COIL_NEEDS_IO_URING()                                                                      \
    if (!coil_test::io_uring_is_allowed())                                                         \
    GTEST_SKIP() << "io_uring is not available"
