#include "../system_calls.hpp"
#include "emulation.hpp"

#include <algorithm>
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

/// The canceller's result if the request was cancelled. As on Linux, it is the number of cancelled
/// requests for those that wait for neither a file nor a timeout, and 0 for the others.
int emulation::result_of_cancelling(const request& victim) noexcept {
    switch (victim.op()) {
    case opcode::futex_wait:
    case opcode::futex_waitv:
    case opcode::waitid:
        return 1;
    default:
        return 0;
    }
}

/// Adds a request to those that finish_ended() handles after the completion of the canceller.
void emulation::end_later(request& r, stage s) noexcept {
    r.stage_ = s;
    r.queued_ = nullptr;
    (ended_ != nullptr ? ended_last_->queued_ : ended_) = &r;
    ended_last_ = &r;
}

/// Returns 0 or 1 if the request was cancelled, now or soon; -EALREADY if it completes with its own
/// result.
int emulation::end_one(request& victim) noexcept {
    if (victim.stage_ == stage::leaving) {
        return -EALREADY;
    }
    if (victim.stage_ == stage::timed) {
        stop_timer(victim);
        end_later(victim, stage::leaving);
        return 0;
    }
    switch (world_.cancel(victim)) {
    case emulated_backend::outcome::ended:
        --pending_;
        unlist(victim);
        end_later(victim, stage::leaving);
        return result_of_cancelling(victim);
    case emulated_backend::outcome::later:
        victim.stage_ = stage::leaving;
        return result_of_cancelling(victim);
    case emulated_backend::outcome::busy:
        break;
    }
    return -EALREADY;
}

/// Completes cancelled requests, and restarts updated polls, after the completion of the request
/// that cancelled or updated them, as Linux does.
void emulation::finish_ended() noexcept {
    while (ended_ != nullptr) {
        request& r = *ended_;
        ended_ = r.queued_;
        if (r.stage_ == stage::held) {
            begin_again(r);
        } else {
            finish(r, r.done != 0 ? static_cast<int>(r.done) : -ECANCELED, r.result_flags);
        }
    }
}

void emulation::begin_again(request& poll) noexcept {
    const int result = world_.begin(poll);
    if (result != emulated_backend::pending) {
        finish(poll, result, poll.result_flags);
        return;
    }
    poll.stage_ = stage::begun;
    ++pending_;
    list(poll);
}

int emulation::cancel(request& r) noexcept {
    const sqe& s = r.entry;
    const std::uint32_t flags = s.cancel_flags;
    int fd = s.fd;
    if ((flags & cancel_flag::fd) != 0 && (flags & cancel_flag::fd_fixed) != 0) {
        emulated_file* const file = files_.use(static_cast<unsigned>(fd));
        if (file == nullptr) {
            return -EBADF;
        }
        r.held_file_ = file;
        fd = file->file;
    } else if ((flags & cancel_flag::fd) != 0) {
        if (!world_.is_open(fd)) {
            return -EBADF;
        }
        world_.forget_earlier_file(fd);
    }
    const auto op = static_cast<unsigned>((flags & cancel_flag::op) != 0 ? s.len : 0);
    return cancel_matching(s.addr, fd, flags, op);
}

/// register_op::sync_cancel: returns when the matching requests have ended, or on expiry.
int emulation::cancel_now(const sync_cancel_reg& given) noexcept {
    constexpr std::uint32_t known = cancel_flag::all | cancel_flag::fd | cancel_flag::any |
                                    cancel_flag::fd_fixed | cancel_flag::userdata | cancel_flag::op;
    constexpr auto is_zero = [](auto value) { return value == 0; };
    if ((given.flags & ~known) != 0 || !std::ranges::all_of(given.pad, is_zero) ||
        !std::ranges::all_of(given.pad2, is_zero)) {
        return -EINVAL;
    }
    if ((given.flags & cancel_flag::fd) == 0) {
        return cancel_now(given, -1);
    }
    if ((given.flags & cancel_flag::fd_fixed) == 0) {
        if (!world_.is_open(given.fd)) {
            return -EBADF;
        }
        world_.forget_earlier_file(given.fd);
        return cancel_now(given, given.fd);
    }
    emulated_file* const file = files_.use(static_cast<unsigned>(given.fd));
    if (file == nullptr) {
        return -EBADF;
    }
    const int result = cancel_now(given, file->file);
    files_.release(file);
    return result;
}

/// Cancels the requests that `given` describes. `fd`: the file to which it refers, or -1.
int emulation::cancel_now(const sync_cancel_reg& given, int fd) noexcept {
    const bool is_limited = given.timeout.tv_sec != -1 || given.timeout.tv_nsec != -1;
    const std::int64_t deadline = is_limited
                                      ? saturating_add(world_.now_ns(), span_of(given.timeout))
                                      : emulated_backend::never;
    for (bool first = true;; first = false) {
        const int result = cancel_matching(given.addr, fd, given.flags, given.opcode);
        finish_ended();
        run_due();
        announce_pending();
        if (result != -EALREADY) {
            return !first && (result == -ENOENT || result > 0) ? 0 : result;
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
    end_later(*victim, stage::held);
    return 0;
}

} // namespace coil::uring::detail
