#include <coil/io/epoll.hpp>

#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/epoll.h>

namespace coil::detail {

void epoll_wait_element::wait_for_readiness() noexcept {
    const uring::sqe call = entry_.request;
    events_ = reinterpret_cast<::epoll_event*>(call.addr);
    most_ = static_cast<int>(call.len);
    by_readiness_ = true;
    if ((call.flags & uring::sqe_flag::fixed_file) != 0) {
        entry_.request = uring::prep::nop(); // only the ring knows what set that is
        most_ = -1;
        return;
    }
    // What the call would refuse may never become readable. Nowhere to put an event: none is taken.
    const int answer = ::epoll_wait(call.fd, nullptr, most_, 0);
    const bool refused = answer < 0 && errno != EFAULT;
    entry_.request = refused ? uring::prep::nop() : uring::prep::poll_add(call.fd, POLLIN);
    entry_.request.flags = call.flags;
    entry_.request.fd = call.fd;
}

int epoll_wait_element::take_events() const noexcept {
    if (most_ < 0) {
        return -EOPNOTSUPP;
    }
    const int count = ::epoll_wait(entry_.request.fd, events_, most_, 0);
    return count < 0 ? -errno : count;
}

ring_entry& limited_epoll_wait_element::arm() noexcept {
    ring_entry& wait = epoll_wait_element::arm();
    wait.next = nullptr;
    if (timeout_ >= 0) {
        limit_.tv_sec = timeout_ / 1000;
        limit_.tv_nsec = std::int64_t{timeout_ % 1000} * 1'000'000;
        limit_entry_.request = uring::prep::link_timeout(&limit_);
        wait.request.flags |= uring::sqe_flag::io_link;
        wait.next = &limit_entry_;
    }
    return wait;
}

io_result limited_epoll_wait_element::result() noexcept {
    const io_result events = epoll_wait_element::result();
    const bool out_of_time = timeout_ >= 0 && events == -ECANCELED && limit_entry_.result == -ETIME;
    return out_of_time ? io_result(0) : events;
}

} // namespace coil::detail
