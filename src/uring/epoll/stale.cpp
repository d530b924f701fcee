#include "epoll_backend_impl.hpp"

#include <sys/epoll.h>

// Registrations that may be stale: a descriptor number may be reused at any time.

namespace coil::uring::detail {
namespace {

constexpr std::int64_t tick_ns = 2'000'000;

bool is_watched_by_stream(const descriptor_state& s) noexcept {
    for (const epoll_request* r = s.watchers.front(); r != nullptr; r = request_queue::after(*r)) {
        if (r->multishot()) {
            return true;
        }
    }
    return false;
}

} // namespace

/// Marks a descriptor whose waiter relies on a registration made earlier.
void epoll_backend::mark_stale(state& s) noexcept {
    if (s.stale != 0) {
        return;
    }
    if (stale_[0] == nullptr && stale_[1] == nullptr) {
        next_tick_ns_ = now_ns() + tick_ns;
    }
    s.stale = 2;
    s.stale_previous = nullptr;
    s.stale_next = stale_[1];
    if (s.stale_next != nullptr) {
        s.stale_next->stale_previous = &s;
    }
    stale_[1] = &s;
}

void epoll_backend::clear_stale(state& s) noexcept {
    if (s.stale == 0) {
        return;
    }
    (s.stale_previous != nullptr ? s.stale_previous->stale_next : stale_[s.stale - 1]) =
        s.stale_next;
    if (s.stale_next != nullptr) {
        s.stale_next->stale_previous = s.stale_previous;
    }
    s.stale = 0;
}

/// Revalidates the descriptors that have been marked for at least one tick, and all if the ring is
/// idle. In a busy ring there are few: an event clears the mark.
void epoll_backend::revalidate_stale(bool idle) noexcept {
    // Limits the number per call, so that many waiters cost little.
    constexpr unsigned busy_limit = 16;
    constexpr unsigned idle_limit = 1024;
    for (unsigned left = idle ? idle_limit : busy_limit; left > 0; --left) {
        state* const oldest = stale_[0] != nullptr || !idle ? stale_[0] : stale_[1];
        if (oldest == nullptr) {
            break;
        }
        state& s = *oldest;
        clear_stale(s);
        if (!s.has_waiters()) {
            continue;
        }
        // Registering again would report known events to a multishot poll.
        const int error = is_watched_by_stream(s) ? watch_again(s) : watch(s, s.interest);
        if (error != 0) {
            abandon(s);
        }
    }
    if (stale_[0] == nullptr) {
        stale_[0] = stale_[1];
        stale_[1] = nullptr;
        for (state* s = stale_[0]; s != nullptr; s = s->stale_next) {
            s->stale = 1;
        }
    }
    if (stale_[0] != nullptr) {
        next_tick_ns_ = now_ns() + tick_ns;
    }
}

/// The number is closed, or refers to a file that is always ready: the requests wait on the
/// previous file.
void epoll_backend::abandon(state& s) noexcept {
    orphan(s.readers, true);
    orphan(s.writers, true);
    orphan(s.watchers, true);
    s.interest = 0;
    s.read_blocked = s.write_blocked = false;
}

void epoll_backend::revalidate(state& s) noexcept {
    clear_stale(s);
    for (const request_queue* queue : {&s.readers, &s.writers, &s.watchers}) {
        for (epoll_request* r = queue->front(); r != nullptr; r = request_queue::after(*r)) {
            r->sure = true;
        }
    }
}

/// Detaches requests from a descriptor whose file was closed. With io_uring, requests would keep
/// the file open; here they remain pending until they are cancelled. Without `all`, requests whose
/// registration was not confirmed stay: they may be for the file that has the number now.
void epoll_backend::orphan(request_queue& queue, bool all) noexcept {
    for (epoll_request* r = queue.front(); r != nullptr;) {
        epoll_request* const next = request_queue::after(*r);
        if (all || r->sure) {
            queue.remove(*r);
            r->at = place::orphaned;
            r->on = nullptr;
            r->file = -1; // a cancellation by descriptor must not match the reused number
        }
        r = next;
    }
}

/// The number refers to a different file than the registered one.
void epoll_backend::fd_reused(state& s) noexcept {
    orphan(s.readers, false);
    orphan(s.writers, false);
    orphan(s.watchers, false);
    clear_stale(s);
    ++s.generation;
    s.interest = 0;
    s.what = state::kind::unknown;
    s.read_blocked = s.write_blocked = s.may_end_early = false;
}

} // namespace coil::uring::detail
