#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/detail/epoll_element.hpp>
#include <coil/uring/prep.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <sys/epoll.h>

// epoll(7), for code that already uses it; to watch a single descriptor use io::poll. Every
// function except epoll_create1 only describes the call; co_await starts it and returns an
// io_result: a value ≥ 0 or -errno.

namespace coil::io {

/// epoll_create1(2), immediately: a descriptor or -errno. In a task of a simulated host, the set
/// belongs to that host; everywhere else it is the same as the system call.
[[nodiscard]] int epoll_create1(int flags = EPOLL_CLOEXEC) noexcept;

/// epoll_ctl(2): 0. The event must outlive the await and may be null for EPOLL_CTL_DEL. Accepts
/// plain descriptors only, because epoll(7) can watch no others.
///
/// IORING_OP_EPOLL_CTL (Linux 5.6); older kernels: the system call, immediately.
inline operation epoll_ctl(int epfd, int op, int fd, ::epoll_event* event) noexcept {
    return detail::make_operation(uring::prep::epoll_ctl(epfd, op, fd, event));
}

/// epoll_wait(2) without a timeout: the number of `events` filled, at least one. The array must
/// outlive the await.
///
/// IORING_OP_EPOLL_WAIT (Linux 6.15). Older kernels: poll(2) through the ring, then the system
/// call. The result is then 0 if another thread took the events in between, a direct descriptor
/// fails with -EOPNOTSUPP, and in the middle of a chain the system call is not made, so the events
/// stay in the set.
inline io_awaitable<detail::epoll_wait_element>
epoll_wait(descriptor epfd, std::span<::epoll_event> events) noexcept {
    return io_awaitable<detail::epoll_wait_element>(
        detail::epoll_wait_element(epfd, detail::event_array(events)));
}

/// epoll_wait(2) for at most `timeout` milliseconds, then 0; a negative number waits indefinitely.
/// In the middle of a chain, expiry ends the chain, as that of timeout() does.
inline io_awaitable<detail::limited_epoll_wait_element>
epoll_wait(descriptor epfd, std::span<::epoll_event> events, int timeout) noexcept {
    return io_awaitable<detail::limited_epoll_wait_element>(
        detail::limited_epoll_wait_element(epfd, detail::event_array(events), timeout));
}

} // namespace coil::io
