#pragma once

#include <coil/uring/epoll_kernel.hpp>
#include <coil/uring/kernel.hpp>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace coil_test {

/// Whether the tests run over epoll: COIL_KERNEL=epoll.
inline bool on_epoll() {
    const char* const name = std::getenv("COIL_KERNEL");
    return name != nullptr && std::string_view(name) == "epoll";
}

/// The kernel that a context without any wish gets here, for what stands in front of it.
inline std::unique_ptr<coil::uring::kernel> make_running_kernel() {
    return on_epoll() ? coil::uring::make_epoll_kernel() : coil::uring::make_linux_kernel();
}

} // namespace coil_test

/// For tests of what only io_uring has.
#define COIL_SKIP_ON_EPOLL(why)                                                                    \
    if (coil_test::on_epoll())                                                                     \
    GTEST_SKIP() << "the epoll kernel: " << (why)
