#pragma once

// The system call and what follows it, inlined into the loop. A return instruction right after
// io_uring_enter is mispredicted, because the kernel leaves the processor's return stack empty, and
// costs about 100 ns. So no function returns between the call and the next turn.

#include <coil/context/detail/event_loop.hpp>

#include <cstdint>
#include <utility>

namespace coil::detail {

inline constexpr std::uint64_t kind_mask = 7; // see completion_kind

[[gnu::always_inline]] inline void event_loop::route(const uring::cqe& completion) noexcept {
    const auto kind = static_cast<completion_kind>(completion.user_data & kind_mask);
    const auto address = static_cast<std::uintptr_t>(completion.user_data & ~kind_mask);
    switch (kind) {
    case completion_kind::entry: {
        auto& entry = *reinterpret_cast<sqe_slot*>(address);
        constexpr std::uint32_t parts = uring::cqe_flag::more | uring::cqe_flag::notif;
        if ((completion.flags & parts) != 0) [[unlikely]] {
            if ((completion.flags & uring::cqe_flag::notif) == 0 ||
                zero_copies_.awaits_notification(&entry)) {
                entry.owner()->on_partial_completion(entry, completion);
            }
            break;
        }
        entry.complete(completion);
        io_op& op = *entry.owner();
        if (op.state().is(op_state::phase::unobserved)) [[likely]] {
#if COIL_ASSERTIONS
            descriptors_.end(op);
#endif
            op.complete_unobserved();
            submissions_.on_completed(1);
            ready_.push(op.node(), op.node().coroutine);
        } else {
            op.on_completion(entry);
        }
        break;
    }
    case completion_kind::cancel:
        reinterpret_cast<io_op*>(address)->on_cancel_completion(completion.res);
        break;
    case completion_kind::wake:
        parker_.descriptor().on_read(completion.res);
        break;
    case completion_kind::ignore:
        break;
    }
}

[[gnu::always_inline]] inline void event_loop::reap() noexcept {
    if (is_observed() || parker_.counts_bytes()) [[unlikely]] {
        reap_observed();
        return;
    }
    metrics_.completions +=
        ring_->for_each_cqe([this](const uring::cqe& completion) { route(completion); });
}

/// Submits and reaps; never sleeps.
[[gnu::always_inline]] inline void event_loop::poll() noexcept {
    if (ring_->sq_ready() > 0 || ring_->needs_enter()) {
        ring_.enter(0, nullptr, 0);
    }
    reap();
}

/// A turn without the poll or the wait at its end.
[[gnu::always_inline]] inline void event_loop::run_turn() {
    kills_.set_running_coroutines(true);
    const bool full = run_ready();
    kills_.set_running_coroutines(false);
    deliver_inbox();
    if (kills_.pending()) [[unlikely]] {
        kills_.process(*this);
    }
    if (timers_.size() > 0) {
        const std::int64_t now = now_ns();
        if (const std::int64_t lag = timers_.lag_ns(now);
            lag - parker_.history().timer_slack_ns() > options_.watchdog.timer_delay.count())
            [[unlikely]] {
            metrics_.note_late_timer(lag);
        }
        parker_.history().on_timers_fired(timers_.expire(now));
    }
    if (submissions_.has_queued()) {
        submissions_.admit_queued();
    }
    if (cancellations_.has_retries()) {
        cancellations_.retry();
    }
    end_turn(full);
}

inline void event_loop::end_turn(bool full) noexcept {
    meter_.count();
    ++metrics_.turns;
    if (full) {
        const std::int64_t now = now_ns();
        budget_.on_used_up(now);
        meter_.lap(now);
    } else {
        budget_.on_left_over();
    }
    publish();
}

/// Writes, for readers on other threads, the metrics that would cost too much to write at each
/// change.
inline void event_loop::publish() noexcept {
    metrics_.tasks_started.set(tasks_.inserted());
    metrics_.tasks.set(tasks_.count());
    tasks_.publish();
    metrics_.in_flight.set(submissions_.in_flight());
    metrics_.timers.set(timers_.size());
    metrics_.back_pressure_waits.set(submissions_.held_back());
}

/// Makes `loop` the current loop of this thread, and restores the previous one at the end. Required
/// around all code that may run or destroy coroutines of the loop.
class event_loop::scope {
public:
    explicit scope(event_loop& loop) noexcept
        : loop_(loop), outer_(std::exchange(current_loop, &loop)) {
        loop_.tasks_.toggle_counting();
    }
    ~scope() {
        COIL_ASSERT(current_loop == &loop_);
        loop_.publish();
        loop_.tasks_.toggle_counting();
        current_loop = outer_;
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

private:
    event_loop& loop_;
    event_loop* const outer_;
};

} // namespace coil::detail
