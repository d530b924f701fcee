#include "../system_calls.hpp"
#include "emulation.hpp"

#include <cerrno>
#include <new>
#include <utility>

namespace coil::uring::detail {

// ---- the list of cancellable requests

std::size_t emulation::hash_of(std::uint64_t user_data) const noexcept {
    return static_cast<std::size_t>(user_data * 0x9e3779b97f4a7c15U >> 20) & (hash_.size() - 1);
}

void emulation::list(request& r) noexcept {
    if (r.listed_) {
        return;
    }
    r.listed_ = true;
    r.next_ = nullptr;
    r.previous_ = listed_last_;
    (listed_last_ != nullptr ? listed_last_->next_ : listed_first_) = &r;
    listed_last_ = &r;
    if (++listed_ > 2 * hash_.size()) [[unlikely]] {
        grow_hash();
    }
    request*& bucket = hash_[hash_of(r.entry.user_data)];
    r.same_hash_ = bucket;
    bucket = &r;
}

void emulation::unlist(request& r) noexcept {
    if (!r.listed_) {
        return;
    }
    r.listed_ = false;
    --listed_;
    (r.previous_ != nullptr ? r.previous_->next_ : listed_first_) = r.next_;
    (r.next_ != nullptr ? r.next_->previous_ : listed_last_) = r.previous_;
    request** at = &hash_[hash_of(r.entry.user_data)];
    while (*at != &r) {
        at = &(*at)->same_hash_;
    }
    *at = r.same_hash_;
}

void emulation::grow_hash() noexcept try {
    std::vector<request*> larger(hash_.size() * 4, nullptr);
    hash_.swap(larger);
    for (request* r = listed_first_; r != listed_last_; r = r->next_) { // the last one is being
                                                                        // added
        request*& bucket = hash_[hash_of(r->entry.user_data)];
        r->same_hash_ = bucket;
        bucket = r;
    }
} catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): look-ups only become slower
}

// ---- cancelling

/// 0: cancelled, now or soon; -EALREADY: it completes with its own result.
int emulation::end_one(request& victim) noexcept {
    if (victim.stage_ == stage::leaving) {
        return -EALREADY;
    }
    const auto end = [&] {
        victim.stage_ = stage::leaving;
        victim.queued_ = nullptr;
        (ended_ != nullptr ? ended_last_->queued_ : ended_) = &victim;
        ended_last_ = &victim;
        return 0;
    };
    if (victim.stage_ == stage::timed) {
        stop_timer(victim);
        return end();
    }
    switch (world_.cancel(victim)) {
    case emulated_backend::outcome::ended:
        --pending_;
        unlist(victim);
        return end();
    case emulated_backend::outcome::later:
        victim.stage_ = stage::leaving;
        return 0;
    case emulated_backend::outcome::busy:
        break;
    }
    return -EALREADY;
}

/// Completes cancelled requests after the completion of the canceller, as Linux does.
void emulation::finish_ended() noexcept {
    while (ended_ != nullptr) {
        request& r = *ended_;
        ended_ = r.queued_;
        finish(r, r.done != 0 ? static_cast<int>(r.done) : -ECANCELED, r.result_flags);
    }
}

int emulation::cancel(request& r) noexcept {
    const sqe& s = r.entry;
    const std::uint32_t flags = s.cancel_flags;
    constexpr std::uint32_t known = cancel_flag::all | cancel_flag::fd | cancel_flag::any |
                                    cancel_flag::fd_fixed | cancel_flag::userdata | cancel_flag::op;
    if ((flags & ~known) != 0) {
        return -EINVAL;
    }
    if ((flags & cancel_flag::any) != 0 && (flags & (cancel_flag::fd | cancel_flag::op)) != 0) {
        return -EINVAL;
    }
    int fd = s.fd;
    if ((flags & cancel_flag::fd) != 0 && (flags & cancel_flag::fd_fixed) != 0) {
        emulated_file* const file = files_.use(static_cast<unsigned>(fd));
        if (file == nullptr) {
            return -EBADF;
        }
        r.held_file_ = file;
        fd = file->file;
    } else if ((flags & cancel_flag::fd) != 0 && !world_.is_open(fd)) {
        return -EBADF;
    }
    const auto op = static_cast<unsigned>((flags & cancel_flag::op) != 0 ? s.len : 0);
    return cancel_matching(s.addr, fd, flags, op);
}

/// register_op::sync_cancel: returns when the matching requests have ended, or on expiry.
int emulation::cancel_now(const sync_cancel_reg& given) noexcept {
    constexpr std::uint32_t known = cancel_flag::all | cancel_flag::fd | cancel_flag::any |
                                    cancel_flag::userdata | cancel_flag::op;
    if ((given.flags & ~known) != 0) {
        return -EINVAL;
    }
    if ((given.flags & cancel_flag::fd) != 0 && !world_.is_open(given.fd)) {
        return -EBADF;
    }
    const bool is_limited = given.timeout.tv_sec != -1 || given.timeout.tv_nsec != -1;
    const std::int64_t deadline = is_limited
                                      ? saturating_add(world_.now_ns(), span_of(given.timeout))
                                      : emulated_backend::never;
    for (bool first = true;; first = false) {
        const int result = cancel_matching(given.addr, given.fd, given.flags, given.opcode);
        finish_ended();
        run_due();
        announce_pending();
        if (result != -EALREADY) {
            return result == -ENOENT && !first ? 0 : result;
        }
        if (world_.now_ns() >= deadline) {
            return -ETIME;
        }
        poll_world(deadline);
    }
}

int emulation::cancel_matching(std::uint64_t user_data, int fd, std::uint32_t flags,
                               unsigned op) noexcept {
    const bool any = (flags & cancel_flag::any) != 0;
    const bool all = any || (flags & cancel_flag::all) != 0;
    const bool by_file = (flags & cancel_flag::fd) != 0;
    const bool by_op = (flags & cancel_flag::op) != 0;
    const bool by_user_data = (flags & cancel_flag::userdata) != 0 || !(by_file || by_op);
    const auto matches = [&](const request& r) {
        if (r.op() == opcode::link_timeout || r.stage_ == stage::leaving) {
            return false;
        }
        if (any) {
            return true;
        }
        if (by_file && (r.stage_ == stage::timed || !world_.is_same_file(r.file, fd))) {
            return false;
        }
        if (by_op && r.entry.opcode != op) {
            return false;
        }
        return !by_user_data || r.entry.user_data == user_data;
    };
    if (!all && by_user_data) [[likely]] {
        for (request* r = hash_[hash_of(user_data)]; r != nullptr; r = r->same_hash_) {
            if (matches(*r)) {
                return end_one(*r);
            }
        }
        return -ENOENT;
    }
    // Cancelling a request may free its link timeout as well, but begins nothing.
    int count = 0;
    for (request* r = listed_first_; r != nullptr;) {
        request* next = r->next_;
        if (next != nullptr && next == r->limit_) {
            next = next->next_;
        }
        if (matches(*r)) {
            const int result = end_one(*r);
            if (!all) {
                return result;
            }
            ++count;
        }
        r = next;
    }
    return all ? count : -ENOENT;
}

// ---- polls

int emulation::remove_poll(request& r) noexcept {
    const sqe s = r.entry;
    constexpr std::uint32_t updates = poll_flag::update_events | poll_flag::update_user_data;
    if ((s.len & ~(updates | poll_flag::add_multi)) != 0 || s.len == poll_flag::add_multi) {
        return -EINVAL;
    }
    if ((s.len & poll_flag::update_user_data) == 0 && s.off != 0) {
        return -EINVAL;
    }
    if ((s.len & poll_flag::update_events) == 0 && s.poll32_events != 0) {
        return -EINVAL;
    }
    request* victim = hash_[hash_of(s.addr)];
    while (victim != nullptr &&
           !(victim->entry.user_data == s.addr && victim->op() == opcode::poll_add &&
             victim->stage_ == stage::begun)) {
        victim = victim->same_hash_;
    }
    if (victim == nullptr) {
        return -ENOENT;
    }
    if ((s.len & updates) == 0) {
        return end_one(*victim);
    }
    if (world_.cancel(*victim) != emulated_backend::outcome::ended) {
        return -EALREADY;
    }
    --pending_;
    unlist(*victim);
    if ((s.len & poll_flag::update_events) != 0) {
        victim->entry.poll32_events = s.poll32_events;
    }
    if ((s.len & poll_flag::update_user_data) != 0) {
        victim->entry.user_data = s.off;
    }
    const int result = world_.begin(*victim);
    if (result == emulated_backend::pending) {
        ++pending_;
        list(*victim);
    } else {
        finish(*victim, result, victim->result_flags);
    }
    return 0;
}

} // namespace coil::uring::detail
