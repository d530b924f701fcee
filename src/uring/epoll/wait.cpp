#include "../inline_calls.hpp"
#include "epoll_backend_impl.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Waiting for events, and retrying the requests that wait for them.

namespace coil::uring::detail {
namespace {

constexpr std::uint32_t end_events = EPOLLHUP | EPOLLERR | EPOLLRDHUP;
constexpr std::int64_t interrupt_gap_ns = 1'000'000;

} // namespace

int epoll_backend::sleep(std::int64_t deadline_ns) noexcept {
    const int room = static_cast<int>(events_.size());
    if (deadline_ns == INT64_MIN) {
        return ::epoll_wait(epoll_, events_.data(), room, 0);
    }
    if (deadline_ns == never) {
        return ::epoll_wait(epoll_, events_.data(), room, -1);
    }
    const std::int64_t left = deadline_ns - now_ns();
    if (left <= 0) {
        return ::epoll_wait(epoll_, events_.data(), room, 0);
    }
#ifdef SYS_epoll_pwait2
    if (has_pwait2_) {
        const timespec span{left / 1'000'000'000, left % 1'000'000'000};
        const long n = ::syscall(SYS_epoll_pwait2, epoll_, events_.data(), room, &span, nullptr,
                                 std::size_t{0});
        // A filter of system calls that is older than the call may also refuse it with EPERM.
        if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return static_cast<int>(n);
        }
        has_pwait2_ = false;
    }
#endif
    // Rounded up, so that no timer fires early.
    const std::int64_t ms = std::min<std::int64_t>((left + 999'999) / 1'000'000, 3'600'000);
    return ::epoll_wait(epoll_, events_.data(), room, static_cast<int>(ms));
}

// ---- after an event

/// Whether `r` is a receive into one buffer that completes with the first data it gets.
[[gnu::always_inline]] inline bool
epoll_backend::is_simple_receive(const epoll_request& r) noexcept {
    constexpr std::uint32_t flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    return r.op() == opcode::recv && !r.selects() && !r.multishot() && r.done == 0 &&
           (r.entry.msg_flags & ~flags) == 0 && r.data().size() == 1;
}

/// try_receive() for a simple receive, inlined: see inline_calls.hpp.
[[gnu::always_inline]] inline int epoll_backend::receive_simply(epoll_request& r) noexcept {
    const ::iovec into = r.data()[0];
    const ssize_t n = inline_recv(r.file, into.iov_base, into.iov_len, MSG_DONTWAIT);
    return n == -EINTR ? attempt(r) : received(r, n, into.iov_len);
}

/// Removes a request from its queue after an attempt, and completes it or continues it elsewhere.
/// Returns false if it still waits in this queue.
bool epoll_backend::settle(request_queue& queue, epoll_request& r, int tried) noexcept {
    if (tried == again_in || tried == again_out) {
        return false;
    }
    queue.remove(r);
    r.at = place::nowhere;
    if (tried == by_worker || tried == by_unbounded_worker || tried == again_event) {
        tried = act_on(r, tried);
    }
    if (tried != pending) {
        finish(r, tried);
    }
    return true;
}

/// Retries the waiting readers, oldest first, until one would block.
[[gnu::always_inline]] inline void epoll_backend::serve_readers(state& s) noexcept {
    while (!s.readers.empty() && !s.read_blocked) {
        epoll_request& r = *s.readers.front();
        const int tried = is_simple_receive(r) ? receive_simply(r) : attempt(r);
        if (!settle(s.readers, r, tried)) {
            s.read_blocked = true;
        }
    }
}

void epoll_backend::serve_writers(state& s) noexcept {
    while (!s.writers.empty() && !s.write_blocked) {
        epoll_request& r = *s.writers.front();
        if (!settle(s.writers, r, attempt(r))) {
            s.write_blocked = true;
        }
    }
}

void epoll_backend::serve_watchers(state& s) noexcept {
    for (epoll_request* r = s.watchers.front(); r != nullptr;) {
        epoll_request* const next = request_queue::after(*r);
        const int tried = attempt(*r);
        if (tried != again_event && tried != again_in) {
            s.watchers.remove(*r);
            r->at = place::nowhere;
            finish(*r, tried);
        }
        r = next;
    }
}

[[gnu::always_inline]] inline void epoll_backend::on_event(state& s,
                                                           std::uint32_t events) noexcept {
    if (s.stale != 0) {
        clear_stale(s);
    }
    if ((events & (end_events | EPOLLPRI)) != 0) {
        s.may_end_early = true;
    }
    if ((events & (EPOLLIN | EPOLLPRI | end_events)) != 0) {
        s.read_blocked = false;
        serve_readers(s);
    }
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        s.write_blocked = false;
        if (!s.writers.empty()) {
            serve_writers(s);
        }
    }
    if (!s.watchers.empty()) {
        serve_watchers(s);
    }
}

/// Continues the multishot requests that yielded to other requests.
[[gnu::noinline]] void epoll_backend::serve_hot() noexcept {
    std::vector<std::uint64_t> now;
    now.swap(hot_);
    for (const std::uint64_t mark : now) {
        if (state* s = descriptors_.find(static_cast<int>(mark & 0xffffffff));
            s != nullptr && s->generation == mark >> 32) {
            on_event(*s, EPOLLIN);
        }
    }
}

void epoll_backend::interrupt_again() noexcept {
    for_each_pending([this](request& one) {
        auto& r = static_cast<epoll_request&>(one);
        if (r.at == place::working && r.interrupting) {
            pool_->interrupt(r.job);
        }
    });
}

int epoll_backend::wait(std::int64_t deadline_ns) noexcept {
    bool polling = deadline_ns == INT64_MIN;
    if (!hot_.empty()) [[unlikely]] {
        serve_hot();
        deadline_ns = INT64_MIN;
        polling = true;
    }
    const bool revalidates = stale_[0] != nullptr || stale_[1] != nullptr;
    if (!polling && revalidates) {
        deadline_ns = std::min(deadline_ns, next_tick_ns_);
    }
    if (interrupting_ != 0) [[unlikely]] {
        interrupt_again();
        if (!polling) {
            deadline_ns = std::min(deadline_ns, now_ns() + interrupt_gap_ns);
        }
    }
    const int n = sleep(deadline_ns);
    const int error = n < 0 ? -errno : 0;
    for (int i = 0; i < n; ++i) {
        const std::uint64_t mark = events_[static_cast<std::size_t>(i)].data.u64;
        if (mark == wake_mark) {
            continue; // finished jobs and messages are collected below
        }
        state* const s = descriptors_.find(static_cast<int>(mark & 0xffffffff));
        if (s != nullptr && s->generation == mark >> 32) [[likely]] {
            on_event(*s, events_[static_cast<std::size_t>(i)].events);
        }
    }
    if (pool_->has_finished()) {
        collect_finished();
    }
    if (has_messages_.load(std::memory_order_acquire)) [[unlikely]] {
        receive_messages();
    }
    if (revalidates && (n <= 0 || ++waits_ % 16 == 0) && now_ns() >= next_tick_ns_) {
        revalidate_stale(n <= 0);
    }
    return error == -EINTR ? error : 0;
}

} // namespace coil::uring::detail
