// Files with which programs wait for events: epoll sets, eventfds and timers. Messages to rings.

#include "epoll_set.hpp"
#include "machine.hpp"
#include "pipe.hpp"
#include "timer_file.hpp"

#include <coil/uring/perform.hpp>

#include <cerrno>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace coil::sim::detail {

int machine::epoll_ctl(const uring::sqe& entry) {
    const auto what = static_cast<int>(entry.len);
    const auto fd = static_cast<int>(entry.off);
    const auto* const event = pointer<const ::epoll_event>(entry.addr);
    if (event == nullptr && what != EPOLL_CTL_DEL) {
        return -EFAULT;
    }
    file* const set = get(entry.fd);
    file* const target = get(fd);
    if (set == nullptr || target == nullptr || set->is_path() || target->is_path()) {
        return -EBADF;
    }
    if (target->is == file::kind::on_disk) {
        return -EPERM; // always ready: epoll(7) does not watch such files
    }
    if (set == target || set->is != file::kind::epoll_set) {
        return -EINVAL;
    }
    return static_cast<epoll_set*>(set)->control(what, *target, fd, event);
}

int machine::event_file(const uring::sqe& entry) {
    if (!up) {
        return -EIO;
    }
    using uring::call_opcode;
    const auto what = static_cast<call_opcode>(entry.opcode);
    const auto flags = static_cast<int>(entry.off);
    if (what == call_opcode::timerfd_settime) {
        file* const f = get(entry.fd);
        auto* const timer = dynamic_cast<timer_file*>(f);
        return timer != nullptr ? timer->set(flags, pointer<const ::itimerspec>(entry.addr))
                                : (f == nullptr ? -EBADF : -EINVAL);
    }
    // The flags of eventfd(2) and timerfd_create(2) have the values of O_CLOEXEC and O_NONBLOCK.
    const int allowed = what == call_opcode::epoll_create1 ? int{EPOLL_CLOEXEC}
                        : what == call_opcode::eventfd ? EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE
                                                       : TFD_CLOEXEC | TFD_NONBLOCK;
    if ((flags & ~allowed) != 0 ||
        (what == call_opcode::timerfd_create && entry.fd != CLOCK_MONOTONIC)) {
        return -EINVAL;
    }
    if (const int error = descriptor_fault(); error != 0) {
        return error;
    }
    ref<file> made;
    if (what == call_opcode::epoll_create1) {
        made = ref<file>(make<epoll_set>(*this));
    } else if (what == call_opcode::eventfd) {
        made = ref<file>(make<event_counter>(*this, entry.len, (flags & EFD_SEMAPHORE) != 0));
    } else {
        made = ref<file>(make<timer_file>(*this));
    }
    made->nonblocking = (flags & TFD_NONBLOCK) != 0;
    return open(made);
}

/// Makes the checks that Linux makes before it finds that the file is not a ring.
int machine::send_message(const uring::sqe& entry) noexcept {
    constexpr std::uint32_t known =
        uring::msg_ring_flag::cqe_skip | uring::msg_ring_flag::flags_pass;
    return entry.buf_index != 0 || (entry.msg_ring_flags & ~known) != 0 ? -EINVAL : -EBADFD;
}

} // namespace coil::sim::detail
