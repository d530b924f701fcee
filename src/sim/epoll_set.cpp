#include "epoll_set.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

#include <poll.h>

namespace coil::sim::detail {

namespace {

constexpr std::uint32_t always_reported = EPOLLERR | EPOLLHUP;
/// The bits of an entry that are not events.
constexpr std::uint32_t behaviour = EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET;
constexpr std::uint32_t allowed_with_exclusive =
    EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;
constexpr int most_nested = 4; // EP_MAX_NESTS
constexpr int most_events = INT_MAX / static_cast<int>(sizeof(::epoll_event));

} // namespace

// ---- an entry --------------------------------------------------------------------------------

/// A change counts even if the file was ready before: that is the edge of EPOLLET. All entries with
/// EPOLLEXCLUSIVE are notified. Linux does the same if the requests of rings wait for the sets: it
/// stops notifying exclusive entries only at a set on which a thread waits in epoll_wait(2).
void epoll_set::entry::happened(std::uint32_t what) noexcept {
    const bool is_disabled = (wanted & ~behaviour) == 0; // EPOLLONESHOT
    if (is_disabled || (what & wanted & ~behaviour) == 0) {
        return;
    }
    if (!ready.is_linked()) {
        set.ready_.push(ready);
    }
    set.changed(POLLIN | POLLRDNORM);
}

void epoll_set::entry::file_has_gone() noexcept {
    unlink();
    set.entries_.erase(key_of(target, fd)); // destroys this object
}

void epoll_set::entry::note_events() {
    if (current_events() != 0) {
        if (!ready.is_linked()) {
            set.ready_.push(ready);
        }
        set.changed(POLLIN | POLLRDNORM);
    }
}

// ---- epoll_ctl -------------------------------------------------------------------------------

int epoll_set::control(int what, file& target, int fd, const ::epoll_event* event) {
    const std::uint32_t events = event != nullptr ? event->events : 0;
    if (what != EPOLL_CTL_DEL && (events & EPOLLEXCLUSIVE) != 0 &&
        (what == EPOLL_CTL_MOD || target.is == kind::epoll_set ||
         (events & ~allowed_with_exclusive) != 0)) {
        return -EINVAL;
    }
    if (what == EPOLL_CTL_ADD && target.is == kind::epoll_set) {
        const int below = static_cast<const epoll_set&>(target).depth_below(*this, 0);
        if (below > most_nested || below + 1 + depth_above() > most_nested) {
            return -ELOOP;
        }
    }
    const auto found = entries_.find(key_of(target, fd));
    const bool is_watched = found != entries_.end();
    switch (what) {
    case EPOLL_CTL_ADD:
        return is_watched ? -EEXIST : add(target, fd, *event);
    case EPOLL_CTL_MOD:
        return is_watched ? modify(*found->second, *event) : -ENOENT;
    case EPOLL_CTL_DEL:
        if (!is_watched) {
            return -ENOENT;
        }
        entries_.erase(found);
        return 0;
    default:
        return -EINVAL;
    }
}

int epoll_set::add(file& target, int fd, const ::epoll_event& event) {
    auto made = std::make_unique<entry>(*this, target, fd);
    entry& e = *made;
    e.wanted = event.events | always_reported;
    e.data = event.data.u64;
    entries_.emplace(key_of(target, fd), std::move(made));
    target.watchers.push(e);
    e.note_events();
    return 0;
}

int epoll_set::modify(entry& e, const ::epoll_event& event) {
    if ((e.wanted & EPOLLEXCLUSIVE) != 0) {
        return -EINVAL;
    }
    e.wanted = event.events | always_reported;
    e.data = event.data.u64;
    e.note_events();
    return 0;
}

/// The number of levels of sets below this one; more than most_nested if one of them is `into`.
int epoll_set::depth_below(const epoll_set& into, int level) const {
    if (this == &into || level > most_nested) {
        return most_nested + 1;
    }
    int depth = 0;
    for (const auto& [key, e] : entries_) {
        if (e->target.is == kind::epoll_set) {
            const auto& inner = static_cast<const epoll_set&>(e->target);
            depth = std::max(depth, inner.depth_below(into, level + 1) + 1);
        }
    }
    return depth;
}

/// The number of levels of sets that watch this one.
int epoll_set::depth_above() const {
    int depth = 0;
    for (const watcher* w = watchers.first(); w != nullptr; w = watchers.after(*w)) {
        depth = std::max(depth, static_cast<const entry*>(w)->set.depth_above() + 1);
    }
    return depth;
}

// ---- epoll_wait ------------------------------------------------------------------------------

int epoll_set::attempt(op& call) {
    const auto room = static_cast<int>(call.entry.len);
    if (call.code() != uring::opcode::epoll_wait || room <= 0 || room > most_events) {
        return -EINVAL;
    }
    const int found = take_events(pointer<::epoll_event>(call.entry.addr), room);
    return found != 0 ? found : would_wait;
}

/// Visits each entry of the list at most once. Level-triggered ones stay in it, behind the others.
int epoll_set::take_events(::epoll_event* to, int room) {
    int count = 0;
    const ready_link* const last = ready_.last();
    for (bool more = last != nullptr; more && count < room;) {
        ready_link& link = *ready_.first();
        more = &link != last;
        link.unlink();
        entry& e = link.whose;
        const std::uint32_t now = e.current_events();
        if (now == 0) {
            continue;
        }
        if (to == nullptr) {
            ready_.push(link);
            return -EFAULT;
        }
        to[count].events = now;
        to[count].data.u64 = e.data;
        ++count;
        if ((e.wanted & EPOLLONESHOT) != 0) {
            e.wanted &= behaviour;
        } else if ((e.wanted & EPOLLET) == 0) {
            ready_.push(link);
        }
    }
    return count;
}

std::uint32_t epoll_set::events() {
    while (ready_link* const first = ready_.first()) {
        if (first->whose.current_events() != 0) {
            return POLLIN | POLLRDNORM;
        }
        first->unlink();
    }
    return 0;
}

} // namespace coil::sim::detail
