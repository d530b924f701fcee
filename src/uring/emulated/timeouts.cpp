#include "../readable.hpp"
#include "../system_calls.hpp"
#include "emulation.hpp"

#include <algorithm>
#include <cerrno>

namespace coil::uring::detail {
namespace {

constexpr std::uint32_t clocks = timeout_flag::boottime | timeout_flag::realtime;

int read_time(std::uint64_t address, timespec& ts) noexcept {
    const auto* const given = pointer<const timespec>(address);
    if (!is_readable(given, sizeof *given)) {
        return -EFAULT;
    }
    ts = *given;
    return ts.tv_sec < 0 || ts.tv_nsec < 0 ? -EINVAL : 0; // tv_nsec may exceed a second
}

} // namespace

/// Called at submission, when the duration is read. The time runs from the request's beginning.
int emulation::check_timeout(request& r) noexcept {
    const sqe& s = r.entry;
    const std::uint32_t flags = s.timeout_flags;
    const bool is_limit = r.op() == opcode::link_timeout;
    if (s.len != 1) {
        return -EINVAL;
    }
    constexpr std::uint32_t known =
        timeout_flag::abs | clocks | timeout_flag::etime_success | timeout_flag::multishot;
    if ((flags & ~known) != 0 || (flags & clocks) == clocks) {
        return -EINVAL;
    }
    constexpr std::uint32_t repeats_at_times = timeout_flag::multishot | timeout_flag::abs;
    if ((flags & repeats_at_times) == repeats_at_times) {
        return -EINVAL;
    }
    const bool multishot = (flags & timeout_flag::multishot) != 0 && !is_limit;
    timespec ts{};
    if (const int error = read_time(s.addr, ts); error != 0) {
        return error;
    }
    r.deadline_ = span_of(ts);
    r.period_ = multishot ? std::max<std::int64_t>(r.deadline_, 1) : 0;
    r.multishot_ = multishot;
    return 0;
}

void emulation::set_time(request& r, std::int64_t span, std::uint32_t flags) noexcept {
    r.entry.timeout_flags =
        (r.entry.timeout_flags & ~timeout_flag::abs) | (flags & timeout_flag::abs);
    r.deadline_ = span;
    if (r.period_ != 0) {
        r.period_ = std::max<std::int64_t>(r.deadline_, 1);
    }
}

void emulation::begin_timeout(request& r) noexcept {
    const std::uint32_t flags = r.entry.timeout_flags;
    r.stage_ = stage::timed;
    r.wall_ = 0;
    const std::int64_t now = world_.now_ns();
    if ((flags & timeout_flag::abs) == 0) {
        r.deadline_ = saturating_add(now, r.deadline_);
    } else if ((flags & clocks) != 0) {
        r.wall_ = r.deadline_;
        const std::int64_t there =
            (flags & timeout_flag::realtime) != 0 ? world_.realtime_ns() : world_.boottime_ns();
        r.deadline_ = saturating_add(now, r.wall_ - there);
    }
    if (r.op() == opcode::timeout) {
        r.ticks_ = r.period_ != 0 ? r.entry.off : 0;
        if (r.period_ == 0 && r.entry.off != 0) {
            // Linux posts immediate completions when the submission ends, so the timeout counts
            // them.
            const bool is_first = submitting_ && !r.follows_;
            r.target_ = (is_first ? completions_before_ : completions_) + r.entry.off;
            counted_.push_back(&r);
        }
    }
    timers_.push(r);
}

/// Takes the timeout out of the heap, the counted timeouts and the hash table.
void emulation::stop_timer(request& r) noexcept {
    if (r.heap_index_ != 0) {
        timers_.remove(r);
    }
    if (r.target_ != 0) {
        std::erase(counted_, &r);
    }
    r.target_ = 0;
    r.limits_ = false;
    unlist(r);
}

void emulation::expire() noexcept {
    while (!timers_.empty()) {
        request& r = timers_.front();
        if (r.deadline_ > world_.now_ns()) {
            return;
        }
        if (r.wall_ != 0) {
            // The request's clock may have been set since the deadline was computed.
            const bool real = (r.entry.timeout_flags & timeout_flag::realtime) != 0;
            const std::int64_t left =
                r.wall_ - (real ? world_.realtime_ns() : world_.boottime_ns());
            if (left > 0) {
                timers_.remove(r);
                r.deadline_ = saturating_add(world_.now_ns(), left);
                timers_.push(r);
                continue;
            }
        }
        expire(r);
        run_due();
    }
}

void emulation::expire(request& r) noexcept {
    if (r.limits_) {
        request& victim = *r.limited_;
        stop_timer(r);
        victim.limit_ = nullptr;
        const int result = end_one(victim);
        finish(r, result == 0 ? -ETIME : result, 0);
        finish_ended();
        return;
    }
    ++timeouts_expired_;
    if (r.period_ != 0 && r.ticks_ != 1 && unread() < cq_entries_) {
        r.ticks_ -= r.ticks_ != 0 ? 1 : 0;
        timers_.remove(r);
        r.deadline_ = std::max(saturating_add(r.deadline_, r.period_), world_.now_ns());
        timers_.push(r);
        post(r.entry.user_data, -ETIME, cqe_flag::more);
        return;
    }
    stop_timer(r);
    finish(r, -ETIME, 0);
}

/// Completes the timeouts whose count of completions has been reached.
void emulation::end_counted() noexcept {
    for (std::size_t i = 0; i < counted_.size();) {
        request& r = *counted_[i];
        if (r.target_ > completions_) {
            ++i;
            continue;
        }
        stop_timer(r); // removes it from counted_
        ++timeouts_expired_;
        finish(r, 0, 0);
    }
    run_due(); // starts what is linked to them
}

/// Called at submission, when a new duration is read.
int emulation::check_timeout_remove(request& r) noexcept {
    const sqe& s = r.entry;
    const std::uint32_t flags = s.timeout_flags;
    constexpr std::uint32_t updates = timeout_flag::update | timeout_flag::link_update;
    if ((flags & updates) == 0) {
        return flags != 0 ? -EINVAL : 0;
    }
    if ((flags & ~(updates | timeout_flag::abs)) != 0) {
        return -EINVAL;
    }
    timespec ts{};
    const int error = read_time(s.addr2, ts);
    r.deadline_ = span_of(ts);
    return error;
}

int emulation::remove_timeout(request& r) noexcept {
    const sqe& s = r.entry;
    const std::uint32_t flags = s.timeout_flags;
    const bool update = (flags & timeout_flag::update) != 0;
    // link_update alone removes a timeout, as on Linux.
    const bool limits = update && (flags & timeout_flag::link_update) != 0;
    const opcode wanted = limits ? opcode::link_timeout : opcode::timeout;
    request* victim = hash_[hash_of(s.addr)];
    while (victim != nullptr && !(victim->entry.user_data == s.addr && victim->op() == wanted &&
                                  victim->heap_index_ != 0)) {
        victim = victim->same_hash_;
    }
    if (victim == nullptr) {
        return -ENOENT;
    }
    if (!update) {
        return end_one(*victim);
    }
    timers_.remove(*victim);
    std::erase(counted_, victim);
    // The timeout keeps its clock, and loses its count of completions or repetitions.
    victim->entry.off = victim->target_ = 0;
    set_time(*victim, r.deadline_, flags);
    begin_timeout(*victim);
    return 0;
}

} // namespace coil::uring::detail
