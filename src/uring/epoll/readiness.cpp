#include "../opcode_kinds.hpp"
#include "attempt.hpp"
#include "epoll_backend_impl.hpp"

#include <cerrno>
#include <new>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

// The queues of waiting requests per descriptor, and when to retry them.

namespace coil::uring::detail {
namespace {

constexpr std::uint32_t in_events = EPOLLIN | EPOLLRDHUP | EPOLLPRI;
constexpr std::uint32_t out_events = EPOLLOUT;

std::uint64_t mark_of(const descriptor_state& s) noexcept {
    return std::uint64_t{s.generation} << 32 | static_cast<std::uint32_t>(s.fd);
}

/// Whether the caller requested -EAGAIN instead of waiting.
bool is_impatient(const epoll_request& r) noexcept {
    const sqe& s = r.entry;
    if (has_message_flags(r.op())) {
        return (s.msg_flags & MSG_DONTWAIT) != 0;
    }
    return r.op() == opcode::accept && (s.ioprio & accept_flag::dontwait) != 0;
}

/// Whether the cached readiness does not apply to a request, because it reads another queue of the
/// socket, or peeks.
bool is_special(const epoll_request& r) noexcept {
    constexpr std::uint32_t special = MSG_OOB | MSG_ERRQUEUE | MSG_PEEK;
    return (r.op() == opcode::recv || r.op() == opcode::recvmsg) &&
           (r.entry.msg_flags & special) != 0;
}

/// Whether the request waits before its first attempt, and takes no buffer meanwhile.
bool polls_first(const epoll_request& r) noexcept {
    const sqe& s = r.entry;
    return has_message_flags(r.op())
               ? (s.ioprio & recvsend_flag::poll_first) != 0
               : r.op() == opcode::accept && (s.ioprio & accept_flag::poll_first) != 0;
}

/// Whether the request may have a result although its file is known not to be ready. An accept does
/// not overtake those that already wait.
bool tries_anyway(const epoll_request& r, const descriptor_state& s) noexcept {
    switch (r.op()) {
    case opcode::poll_add:
    case opcode::connect: // a second connect(2) fails immediately
        return true;
    case opcode::accept: // fails if the socket does not listen
        return s.readers.empty() || s.readers.front()->op() != opcode::accept;
    case opcode::read:
    case opcode::readv:
    case opcode::read_fixed:
    case opcode::readv_fixed: // nothing to read, or an offset, which sockets refuse
        return !r.selects() &&
               (rest_of(r).bytes() == 0 ||
                (r.entry.off != 0 && r.entry.off != ~std::uint64_t{0} && is_socket(r.file)));
    default:
        return false;
    }
}

std::uint32_t events_for_poll(const epoll_request& r) noexcept {
    constexpr std::uint32_t writable = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
    return r.op() == opcode::poll_add && (r.entry.poll32_events & writable) != 0
               ? in_events | out_events
               : in_events;
}

/// Whether the call sleeps until it is woken or interrupted. Its cancellation waits until the
/// thread has returned from the call, so it is known whether the call was cancelled.
bool sleeps_outside_files(opcode op) noexcept {
    return op == opcode::futex_wait || op == opcode::futex_waitv || op == opcode::waitid;
}

} // namespace

descriptor_state* descriptor_table::get(int fd) noexcept try {
    if (fd < 0) {
        return nullptr;
    }
    const auto i = static_cast<std::size_t>(fd);
    if (i >= states_.size()) {
        constexpr std::size_t most = std::size_t{1} << 24;
        if (i >= most) {
            return nullptr;
        }
        states_.resize(i + i / 2 + 64);
    }
    if (states_[i] == nullptr) {
        states_[i] = std::make_unique<descriptor_state>();
        states_[i]->fd = fd;
    }
    return states_[i].get();
} catch (const std::bad_alloc&) {
    return nullptr;
}

request_queue& epoll_backend::queue_of(state& s, place where) noexcept {
    return where == place::reading ? s.readers : where == place::writing ? s.writers : s.watchers;
}

/// Attempts a new request immediately, or appends it to the queue if readiness is known to be
/// missing.
int epoll_backend::begin_io(epoll_request& r) noexcept {
    const int fd = r.helper >= 0 ? r.helper : r.file;
    state* const s = descriptors_.get(fd);
    if (s == nullptr || s->closing) {
        return -EBADF;
    }
    r.on = s;
    const bool out = sends(r.op()) || r.op() == opcode::connect;
    if (polls_first(r)) {
        if (is_impatient(r)) {
            return -EAGAIN; // as on Linux: it would have to wait first
        }
        if (is_socket(fd) && !is_ready(fd, out ? POLLOUT : POLLIN)) {
            return wait_on(*s, r,
                           is_special(r) ? place::watching
                           : out         ? place::writing
                                         : place::reading);
        }
    }
    const bool blocked =
        out ? s->write_blocked || !s->writers.empty() : s->read_blocked || !s->readers.empty();
    if (blocked && !tries_anyway(r, *s) && !is_special(r) && !is_impatient(r)) {
        if (r.selects()) {
            if (const int error = select(r); error != 0) {
                return error; // missing buffers are reported even before data arrives
            }
            keep_buffer(r);
        }
        return wait_on(*s, r, out ? place::writing : place::reading);
    }
    if (r.op() == opcode::poll_add && r.multishot() &&
        (s->interest & events_for_poll(r)) != events_for_poll(r)) {
        // Registering reports current readiness: do not report it twice.
        const int result = wait_on(*s, r, place::watching);
        return result == -EPERM ? poll_now(r) : result;
    }
    const int result = act_on(r, attempt(r));
    return result == -EPERM && r.op() == opcode::poll_add ? -EINVAL : result;
}

/// Queues the request, or hands it to a worker, if the attempt has to be repeated. Returns
/// `pending` or the result.
int epoll_backend::act_on(epoll_request& r, int tried) noexcept {
    switch (tried) {
    case again_in:
    case again_out:
    case again_event:
        if (is_impatient(r)) {
            return failed(r, -EAGAIN);
        }
        return wait_on(*r.on, r,
                       tried == again_event || is_special(r) ? place::watching
                       : tried == again_in                   ? place::reading
                                                             : place::writing);
    case by_worker:
    case by_unbounded_worker:
        return hand_over(r, tried == by_unbounded_worker);
    default:
        return tried;
    }
}

int epoll_backend::wait_on(state& s, epoll_request& r, place where) noexcept {
    std::uint32_t events = where == place::reading ? in_events : out_events;
    if (where == place::watching) {
        events = events_for_poll(r);
    }
    if ((s.interest & events) != events) {
        const int error = watch(s, events);
        if (error == -EPERM && where != place::watching) {
            s.what = state::kind::file; // epoll refuses files that are always ready
            return hand_over(r, false);
        }
        if (error != 0) {
            return error;
        }
        r.sure = true;
        if (s.what == state::kind::unknown &&
            (r.op() == opcode::recv || r.op() == opcode::recvmsg)) {
            learn_socket(s); // from now on a short read means that no data is left
        }
    } else {
        r.sure = false;
        // If an end was seen, the number has probably been reused.
        if (s.may_end_early && !s.has_waiters()) {
            if (const int error = watch_again(s); error != 0) {
                return error;
            }
            r.sure = true;
        } else {
            mark_stale(s);
        }
    }
    queue_of(s, where).push(r);
    r.at = where;
    r.waited = true;
    r.on = &s;
    if (where == place::reading) {
        s.read_blocked = true;
    } else if (where == place::writing) {
        s.write_blocked = true;
    }
    return pending;
}

/// Registers with epoll. Current readiness is reported as an edge, so events since the previous
/// attempt are not missed.
int epoll_backend::watch(state& s, std::uint32_t events) noexcept {
    ::epoll_event event{};
    event.events = s.interest | events | EPOLLET;
    event.data.u64 = mark_of(s);
    int op = s.interest != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    for (int tries = 0; tries < 3; ++tries) {
        if (::epoll_ctl(epoll_, op, s.fd, &event) == 0) {
            s.interest = event.events & ~static_cast<std::uint32_t>(EPOLLET);
            revalidate(s);
            return 0;
        }
        if (errno == ENOENT && op == EPOLL_CTL_MOD) {
            fd_reused(s);
            event.events = events | EPOLLET;
            event.data.u64 = mark_of(s);
            op = EPOLL_CTL_ADD;
        } else if (errno == EEXIST && op == EPOLL_CTL_ADD) {
            op = EPOLL_CTL_MOD;
        } else {
            return -errno;
        }
    }
    return -EBADF;
}

/// Registers again only if the number refers to another file by now. A registration that still
/// holds is left alone, so epoll does not report known events again.
int epoll_backend::watch_again(state& s) noexcept {
    const std::uint32_t interest = s.interest;
    ::epoll_event event{};
    event.events = interest | EPOLLET;
    ++s.generation; // the mark that the file has after fd_reused()
    event.data.u64 = mark_of(s);
    --s.generation;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, s.fd, &event) == 0) {
        fd_reused(s);
        s.interest = interest;
    } else if (errno != EEXIST) {
        return -errno;
    }
    revalidate(s);
    return 0;
}

void epoll_backend::again_soon(const state& s) noexcept {
    try {
        hot_.push_back(mark_of(s));
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): the next edge will do
    }
}

/// Forgets the cached state of a descriptor that the backend has just created, or is about to
/// close.
void epoll_backend::fresh(int fd) noexcept {
    state* const s = descriptors_.find(fd);
    if (s == nullptr) {
        return;
    }
    orphan(s->readers, true);
    orphan(s->writers, true);
    orphan(s->watchers, true);
    fd_reused(*s);
}

// ---- removal

void epoll_backend::leave_queue(epoll_request& r) noexcept {
    if (r.on == nullptr) {
        return;
    }
    queue_of(*r.on, r.at).remove(r);
    if (!r.on->has_waiters()) {
        clear_stale(*r.on);
    }
}

void epoll_backend::clean_up(epoll_request& r) noexcept {
    if (r.helper >= 0) {
        close_descriptor(r.helper);
        r.helper = -1;
    }
    release(r);
    r.at = place::nowhere;
    r.on = nullptr;
}

void epoll_backend::finish(epoll_request& r, int result) noexcept {
    clean_up(r);
    complete(r, result);
}

emulated_backend::outcome epoll_backend::cancel(request& one) noexcept {
    auto& r = static_cast<epoll_request&>(one);
    switch (r.at) {
    case place::reading:
    case place::writing:
    case place::watching:
        leave_queue(r);
        clean_up(r);
        return outcome::ended;
    case place::working:
        if (pool_->withdraw(r.job)) {
            clean_up(r);
            return outcome::ended;
        }
        if (!r.interrupting) {
            ++interrupting_;
        }
        r.interrupting = true;
        if (!sleeps_outside_files(r.op())) {
            pool_->interrupt(r.job);
            return outcome::busy;
        }
        // The job may have been woken at the same time. Only its thread knows, so wait for it.
        return pool_->interrupt_now(r.job) && r.job.result == -EINTR ? outcome::later
                                                                     : outcome::busy;
    case place::orphaned:
    case place::nowhere:
        break;
    }
    clean_up(r);
    return outcome::ended;
}

} // namespace coil::uring::detail
