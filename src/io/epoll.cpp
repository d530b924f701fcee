#include <coil/context/detail/perform.hpp>
#include <coil/io/epoll.hpp>

#include <cerrno>
#include <cstdint>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// The error with which epoll_wait(2) would refuse the call (-errno), or 0. The null pointer for
/// the events (EFAULT) ensures that no event is consumed.
int refusal_of(int epfd, int most) noexcept {
    return ::syscall(SYS_epoll_pwait, epfd, nullptr, most, 0, nullptr, 0) < 0 && errno != EFAULT
               ? -errno
               : 0;
}

} // namespace

void epoll_wait_element::wait_for_readiness() noexcept {
    const uring::sqe call = entry_.request;
    events_ = reinterpret_cast<::epoll_event*>(call.addr);
    most_ = static_cast<int>(call.len);
    by_readiness_ = true;
    if ((call.flags & uring::sqe_flag::fixed_file) != 0) {
        refusal_ = -EOPNOTSUPP; // only the ring can resolve the set
    } else {
        refusal_ = refusal_of(call.fd, most_); // a refused descriptor may never become readable
    }
    entry_.set_call(uring::prep::poll_add(refusal_ != 0 ? -1 : call.fd, POLLIN));
}

int epoll_wait_element::take_events() const noexcept {
    if (entry_.result < 0) {
        return entry_.result;
    }
    const int count = ::epoll_wait(entry_.request.fd, events_, most_, 0);
    return count < 0 ? -errno : count;
}

sqe_slot& limited_epoll_wait_element::arm() noexcept {
    sqe_slot& wait = epoll_wait_element::arm();
    wait.set_next(nullptr);
    if (timeout_ >= 0) {
        limit_.tv_sec = timeout_ / 1000;
        limit_.tv_nsec = std::int64_t{timeout_ % 1000} * 1'000'000;
        limit_entry_.set_call(uring::prep::link_timeout(&limit_));
        wait.request.flags |= uring::sqe_flag::io_link;
        wait.set_next(&limit_entry_);
    }
    return wait;
}

io_result limited_epoll_wait_element::result() noexcept {
    const io_result events = epoll_wait_element::result();
    const bool out_of_time = timeout_ >= 0 && events == -ECANCELED && limit_entry_.result == -ETIME;
    return out_of_time ? io_result(0) : events;
}

} // namespace coil::detail

namespace coil::io {

int epoll_create1(int flags) noexcept {
    return coil::detail::perform(uring::prep::epoll_create1(flags));
}

} // namespace coil::io
