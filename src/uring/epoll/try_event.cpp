#include "../readable.hpp"
#include "../system_calls.hpp"
#include "epoll_backend_impl.hpp"

#include <coil/uring/prep_core.hpp>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

// Attempts of operations that wait for an event and transfer no data.

namespace coil::uring::detail {

namespace {

/// The events that poll(2) reports, or `otherwise` if there are none.
int current_events(const epoll_request& r, int otherwise) noexcept {
    const auto wanted = static_cast<short>(prep::detail::poll_mask(r.entry.poll32_events) & 0xffff);
    // io_uring always reports POLLRDHUP, poll(2) only if it is requested.
    ::pollfd p{r.file, static_cast<short>(wanted | POLLRDHUP), 0};
    const int n = ::poll(&p, 1, 0);
    if (n < 0) {
        return errno == EINTR ? otherwise : -errno;
    }
    if ((p.revents & POLLNVAL) != 0) {
        return -EBADF;
    }
    return n == 0 ? otherwise : static_cast<unsigned short>(p.revents);
}

} // namespace

int epoll_backend::try_poll(epoll_request& r) noexcept {
    const int events = current_events(r, again_event);
    const bool continues = events >= 0 && r.multishot() && part(r, events);
    return continues ? again_event : events;
}

/// The only result of a multishot poll of a file that reports no events because it is always ready.
int epoll_backend::poll_now(epoll_request& r) noexcept { return current_events(r, -EINVAL); }

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
    return store_child(e, info);
}

/// The result of a waitid that has found a child: 0, or -EFAULT.
int epoll_backend::store_child(const sqe& entry, const ::siginfo_t& info) noexcept {
    auto* const to = pointer<::siginfo_t>(entry.addr2);
    if (to == nullptr) {
        return 0;
    }
    const auto end = reinterpret_cast<std::uintptr_t>(&to->si_status) + sizeof to->si_status;
    if (!is_accessible(to, end - reinterpret_cast<std::uintptr_t>(to))) {
        return -EFAULT;
    }
    to->si_signo = info.si_signo;
    to->si_errno = 0;
    to->si_code = info.si_code;
    to->si_pid = info.si_pid;
    to->si_uid = info.si_uid;
    to->si_status = info.si_status;
    return 0;
}

} // namespace coil::uring::detail
