#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <sys/epoll.h>

// epoll(7), for code that already uses it; to watch a single descriptor use io::poll. Every
// function only describes the call; co_await starts it and gives an io_result: a value ≥ 0 or
// −errno.

namespace coil {

namespace detail {

constexpr int most_events(std::span<::epoll_event> events) noexcept {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    return static_cast<int>(events.size() < most ? events.size() : most);
}

/// epoll_wait(2) without a timeout. On a ring that lacks the opcode, polls the epoll descriptor and
/// then makes the system call.
class epoll_wait_element : public io_element {
public:
    epoll_wait_element(io::descriptor epfd, std::span<::epoll_event> events) noexcept
        : io_element(request_on(
              epfd, uring::prep::epoll_wait(epfd.number(), events.data(), most_events(events)))) {}

    ring_entry& arm() noexcept {
        if (!required_loop().ring().supports(uring::opcode::epoll_wait)) [[unlikely]] {
            wait_for_readiness();
        }
        return entry_;
    }
    io_result result() noexcept {
        if (by_readiness_ && entry_.result != -ECANCELED) [[unlikely]] {
            return io_result(refusal_ != 0 ? refusal_ : take_events());
        }
        return io_element::result();
    }

private:
    void wait_for_readiness() noexcept;
    [[nodiscard]] int take_events() const noexcept;

    // The arguments of the call while the entry holds the poll.
    ::epoll_event* events_ = nullptr;
    int most_ = 0;
    int refusal_ = 0; // the error that the call would return immediately, −errno
    bool by_readiness_ = false;
};

/// With a timeout, which is an entry of its own if the ring has the opcode.
class limited_epoll_wait_element : public epoll_wait_element {
public:
    static constexpr std::uint16_t entries = 2;
    static constexpr bool needs_result = true;
    static constexpr bool needs_every_result = true;

    limited_epoll_wait_element(io::descriptor epfd, std::span<::epoll_event> events,
                               int timeout) noexcept
        : epoll_wait_element(epfd, events), timeout_(timeout) {}

    ring_entry& arm() noexcept;
    io_result result() noexcept;

private:
    int timeout_;
    uring::timespec limit_{};
    ring_entry limit_entry_;
};

} // namespace detail

namespace io {

/// epoll_ctl(2): 0. The event must outlive the await and may be null for EPOLL_CTL_DEL. Accepts
/// plain descriptors only, as an epoll set does.
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
/// gives -EOPNOTSUPP, and in the middle of a chain the events stay in the set.
inline io_awaitable<detail::epoll_wait_element>
epoll_wait(descriptor epfd, std::span<::epoll_event> events) noexcept {
    return io_awaitable<detail::epoll_wait_element>(detail::epoll_wait_element(epfd, events));
}

/// epoll_wait(2) for at most `timeout` milliseconds, then 0; a negative number waits indefinitely.
/// In a chain, expiry ends the chain; use timeout(epoll_wait(epfd, events), d) there instead.
inline io_awaitable<detail::limited_epoll_wait_element>
epoll_wait(descriptor epfd, std::span<::epoll_event> events, int timeout) noexcept {
    return io_awaitable<detail::limited_epoll_wait_element>(
        detail::limited_epoll_wait_element(epfd, events, timeout));
}

} // namespace io

} // namespace coil
