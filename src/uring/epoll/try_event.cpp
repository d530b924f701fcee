#include "../system_calls.hpp"
#include "epoll_backend_impl.hpp"

#include <coil/uring/prep_core.hpp>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

// Attempts of operations that wait for an event and transfer no data.

namespace coil::uring::detail {

int epoll_backend::try_poll(epoll_request& r) noexcept {
    const auto wanted = static_cast<short>(prep::detail::poll_mask(r.entry.poll32_events) & 0xffff);
    ::pollfd p{r.file, wanted, 0};
    const int n = ::poll(&p, 1, 0);
    if (n < 0) {
        return errno == EINTR ? again_event : -errno;
    }
    if ((p.revents & POLLNVAL) != 0) {
        return -EBADF;
    }
    if (n == 0) {
        return again_event;
    }
    const int events = static_cast<unsigned short>(p.revents);
    if (!r.multishot() || !part(r, events)) {
        return events;
    }
    return again_event;
}

int epoll_backend::try_epoll_wait(epoll_request& r) noexcept {
    const int n = ::epoll_wait(r.file, pointer<::epoll_event>(r.entry.addr),
                               static_cast<int>(r.entry.len), 0);
    if (n < 0) {
        return errno == EINTR ? again_in : -errno;
    }
    return n == 0 ? again_in : n;
}

int epoll_backend::try_waitid(epoll_request& r) noexcept {
    const sqe& e = r.entry;
    ::siginfo_t info{};
    const int options = static_cast<int>(e.file_index);
    const int result = ::waitid(static_cast<::idtype_t>(e.len), static_cast<::id_t>(e.fd), &info,
                                options | WNOHANG);
    if (result != 0) {
        return -errno;
    }
    if (info.si_pid == 0 && (options & WNOHANG) == 0) {
        return again_in;
    }
    if (auto* const to = pointer<::siginfo_t>(e.addr2); to != nullptr) {
        to->si_signo = info.si_signo;
        to->si_errno = 0;
        to->si_code = info.si_code;
        to->si_pid = info.si_pid;
        to->si_uid = info.si_uid;
        to->si_status = info.si_status;
    }
    return 0;
}

} // namespace coil::uring::detail
