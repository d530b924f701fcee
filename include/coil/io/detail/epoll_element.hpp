#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <span>

#include <sys/epoll.h>

namespace coil::detail {

/// An array of events in the form that epoll_wait(2) takes.
struct event_array {
    explicit event_array(const std::span<::epoll_event>& events) noexcept
        : data(events.data()),
          count(events.size() < most ? static_cast<int>(events.size()) : most) {}

    ::epoll_event* data;
    int count;

private:
    static constexpr int most = std::numeric_limits<int>::max();
};

/// epoll_wait(2) without a timeout. On a ring that lacks the opcode, polls the epoll descriptor and
/// then makes the system call.
class epoll_wait_element : public io_element {
public:
    epoll_wait_element(io::descriptor epfd, event_array events) noexcept
        : io_element(
              request_on(epfd, uring::prep::epoll_wait(epfd.number(), events.data, events.count))) {
    }

    sqe_slot& arm() noexcept {
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
    int refusal_ = 0; // the error that the call would return immediately, -errno
    bool by_readiness_ = false;
};

/// epoll_wait(2) with a timeout, which is a separate entry if the ring has the opcode.
class limited_epoll_wait_element : public epoll_wait_element {
public:
    static constexpr std::uint16_t entries = 2;
    static constexpr bool needs_result = true;
    static constexpr bool needs_every_result = true;

    limited_epoll_wait_element(io::descriptor epfd, event_array events, int timeout) noexcept
        : epoll_wait_element(epfd, events), timeout_(timeout) {}

    sqe_slot& arm() noexcept;
    io_result result() noexcept;

private:
    int timeout_;
    uring::timespec limit_{};
    sqe_slot limit_entry_;
};

} // namespace coil::detail
