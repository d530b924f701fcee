#pragma once

#include <coil/uring/abi.hpp>

#include <cstdint>
#include <ctime>

namespace coil::uring::detail {

/// Calls for the backend::perform of backends with a world of their own, beyond those of
/// call_opcode: they create the files with which programs wait for events. On Linux, coil makes the
/// system calls instead.
enum class event_call : std::uint8_t {
    epoll_create = 250,    // off: flags
    eventfd = 251,         // off: flags, len: initial value
    timerfd_create = 252,  // CLOCK_MONOTONIC; off: flags
    timerfd_settime = 253, // fd, addr: itimerspec*; off: flags
};

constexpr bool is_event_call(const sqe& s) noexcept {
    return s.opcode >= static_cast<std::uint8_t>(event_call::epoll_create) &&
           s.opcode <= static_cast<std::uint8_t>(event_call::timerfd_settime);
}

/// epoll_create1(2).
constexpr sqe create_epoll_set(int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(event_call::epoll_create);
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// eventfd(2).
constexpr sqe create_eventfd(unsigned initial, int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(event_call::eventfd);
    s.len = initial;
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// timerfd_create(2) with CLOCK_MONOTONIC.
constexpr sqe create_timerfd(int flags) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(event_call::timerfd_create);
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

/// timerfd_settime(2).
inline sqe set_timerfd(int fd, int flags, const ::itimerspec* spec) noexcept {
    sqe s{};
    s.opcode = static_cast<std::uint8_t>(event_call::timerfd_settime);
    s.fd = fd;
    s.addr = reinterpret_cast<std::uintptr_t>(spec);
    s.off = static_cast<std::uint32_t>(flags);
    return s;
}

} // namespace coil::uring::detail
