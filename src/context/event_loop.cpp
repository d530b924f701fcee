// A turn of the loop: what runs, and how it waits.

#include "affinity_scope.hpp"
#include "deadlock.hpp"
#include "event_loop_enter.hpp"
#include "watched_run.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/transfer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace coil::detail {

namespace {

/// The longest sleep of the loop while the kernel refuses the entries of the submission queue.
constexpr std::int64_t refused_park_ns = 1'000'000;

} // namespace

/// Sets up the state for a run() and restores it at the end, even if an exception ends the run.
class event_loop::running_scope {
public:
    explicit running_scope(event_loop& loop) : loop_(loop), here_(loop) {
        if (loop_.options_.cpu_affinity >= 0) {
            pin(loop_.options_.cpu_affinity); // first: binding may create the ring
        }
        loop_.ring_.bind_to_this_thread();
        scope_.emplace(loop);
        loop_.ring_->register_ring_fd();
        loop_.probe_.rest();
        loop_.meter_.reset(loop_.now_ns());
        loop_.parker_.begin_run();
        watched_.emplace(loop.options_, loop.ready_, loop.metrics_, loop.meter_);
    }
    ~running_scope() {
        loop_.meter_.lap(loop_.now_ns());
        watched_.reset();
        loop_.metrics_.ready.set(loop_.ready_.size());
        loop_.stop_watching();
        // The registration would keep the ring alive if another thread destroyed the context.
        loop_.ring_->unregister_ring_fd();
    }
    running_scope(const running_scope&) = delete;
    running_scope& operator=(const running_scope&) = delete;

private:
    void pin(int processor) {
        if (const int error = affinity_.pin(processor); error != 0) {
            throw std::system_error(error, std::generic_category(),
                                    "coil: cpu_affinity " + std::to_string(processor));
        }
    }

    event_loop& loop_;
    const deadlock_detection::nested_run here_;
    affinity_scope affinity_;
    std::optional<scope> scope_;
    std::optional<watched_run> watched_;
};

// ---- idling

/// poll(), and records for the idle policy how many completions it found, if any.
[[gnu::always_inline]] inline void event_loop::poll_cq() noexcept {
    const std::uint64_t before = metrics_.completions.get();
    poll();
    if (const auto found = static_cast<std::int32_t>(metrics_.completions.get() - before);
        found > 0) {
        parker_.history().on_polled(found);
    }
}

[[gnu::always_inline]] inline void event_loop::park(std::int64_t until_ns) noexcept {
    if (!parker_.announce()) {
        parker_.lap_if_due();
        poll(); // a message has arrived, or the wake-up descriptor is not watched
        return;
    }
    if (!(has_work() || signals_.guard.held())) {
        parker_.unpark();
        return;
    }
    const bool leaves = round_.takes_part() && !has_work();
    if (leaves) {
        round_.become_idle(inbox_);
    }
    parker_.sleep(until_ns, submissions_.completions_due());
    if (leaves) {
        round_.become_active();
    }
}

/// Called when nothing is ready: submits, then waits as the idle policy says.
[[gnu::always_inline]] inline void event_loop::wait() noexcept {
    metrics_.ready.set(0);
    if (submissions_.sq_starved()) [[unlikely]] {
        // The loop must not sleep: the entries that fill the queue may need operations that are
        // held back for lack of space in it. If the kernel has no memory to take the entries, the
        // loop tries again soon.
        parker_.lap_if_due();
        poll();
        if (ring_->sq_ready() > 0) {
            park(std::min(next_deadline(), now_ns() + refused_park_ns));
            reap();
        }
        return;
    }
    // Spinning polls memory, so it needs a backend that posts completions there asynchronously.
    if (ring_.posts_asynchronously() && parker_.may_spin() &&
        parker_.history().should_spin(submissions_.in_flight() > 0)) {
        parker_.coalesce(submissions_.completions_due());
        poll_cq();
        if (!ready_.empty() || submissions_.sq_starved()) {
            return; // in the second case, the next turn submits what was held back
        }
        if (parker_.spin(next_deadline())) {
            parker_.history().on_fruitful_spin();
            if (inbox_.empty()) {
                poll_cq();
            } else {
                deliver_inbox(); // for the next turn; completions are reaped at its end anyway
            }
            return;
        }
        parker_.history().on_fruitless_spin();
    }
    std::int64_t until = next_deadline();
    if (signals_.checks.interval_ns != 0) [[unlikely]] {
        until = std::min(until, deadlock_detection::next_check_ns(*this));
    }
    if (frame_cache_overflowed) [[unlikely]] {
        until = parker_.trim_after_peak(until);
    }
#if COIL_ASSERTIONS
    if (descriptors_.has_closed()) [[unlikely]] {
        until = std::min(until, descriptors_.report_closed(now_ns()));
    }
#endif
    park(until);
    reap();
}

/// The time of the next timer or of the next retry of a cancellation, whichever is first.
std::int64_t event_loop::next_deadline() noexcept {
    const std::int64_t timer = parker_.history().wake_up_for(timers_.next_ns());
    return cancellations_.has_retries() ? std::min(timer, cancellations_.retry_at_ns()) : timer;
}

// ---- running coroutines

/// Aligned and not inlined: the loop is a few instructions long, and its position in the cache
/// lines changes the cost of a switch between coroutines by a tenth.
[[gnu::noinline, gnu::aligned(64)]] bool event_loop::run_ready() {
    metrics_.ready.set(ready_.size());
    if (is_observed()) [[unlikely]] {
        return run_observed();
    }
    unsigned left = budget_.resumptions();
    if (probe_.due()) [[unlikely]] {
        left = run_probed(left);
    }
    for (; left > 0; --left) {
        if (!ready_.has_next()) {
            return false;
        }
        COIL_ASSERT(!destructor_waits_.any_aside()); // it may be about to be destroyed
        poison_errno();
        resume(ready_.pop());
    }
    return true;
}

/// Resumes the coroutines ahead of the one that the probe follows and measures that one's delay if
/// it is resumed in this turn. Returns how many more may be resumed.
[[gnu::noinline, gnu::cold]] unsigned event_loop::run_probed(unsigned left) {
    if (ready_.empty()) {
        probe_.look_again(0);
        return left;
    }
    if (!probe_.following()) {
        probe_.follow(ready_.size() - 1, now_ns());
    }
    if (probe_.ahead() >= left) {
        probe_.look_again(left);
        return left;
    }
    for (std::size_t ahead = probe_.ahead(); ahead > 0 && ready_.has_next(); --ahead, --left) {
        poison_errno();
        resume(ready_.pop());
    }
    if (const std::uint64_t delay = probe_.resumed(now_ns());
        std::cmp_greater(delay, options_.watchdog.ready_delay.count())) {
        metrics_.note_late_resumption(delay);
    }
    return left;
}

void event_loop::deliver_inbox() noexcept {
    const bool was_lonely = signals_.lonely_waits.end();
    queue_node* node = inbox_.take_all();
    if (node == nullptr) {
        return;
    }
    if (was_lonely) [[unlikely]] {
        signals_.checks.interval_ns = 0;
    }
    parker_.history().on_inbox_delivered();
    std::uint64_t nodes = 0;
    while (node != nullptr) {
        queue_node* following = node->next;
        node->deliver(*node, *this);
        node = following;
        ++nodes;
    }
    metrics_.wake_ups_elided += nodes - parker_.take_woken_by_posts();
}

// ---- a turn and its two drivers
// run() occupies a thread and lets it sleep; turn() is called by a sim_driver and never waits. Both
// execute run_turn() and then the step that after_turn() returns.

/// The next step of the loop after run_turn().
[[gnu::always_inline]] inline event_loop::next_step event_loop::after_turn() const noexcept {
    if (!ready_.empty()) {
        return next_step::run;
    }
    if (stop_.requested()) {
        return next_step::stop;
    }
    // The inbox is checked last: a message that was posted before the guard was released is then
    // seen.
    if (has_work() || signals_.guard.held() || !inbox_.empty()) {
        return next_step::wait;
    }
    return next_step::end;
}

void event_loop::run() {
    if (!begin_running()) {
        throw std::logic_error(
            "coil: io_context::run() called while the context is already running");
    }
    struct ending {
        event_loop& loop;
        ~ending() {
            loop.leave_round();
            loop.signals_.checks.interval_ns = 0;
            // The run may end while the loop waits, when its round ends. That wait must not go on
            // in the next run.
            loop.signals_.lonely_waits.end();
            loop.end_running();
        }
    };
    const ending at_end{*this};
    const running_scope running(*this);
    begin_own_run();
    run_until_done();
}

void event_loop::run_until_done() try {
    for (;;) {
        if (stop_.requested()) [[unlikely]] {
            meter_.lap(now_ns()); // a shutdown does not count as a turn
            shut_down();
            return;
        }
        run_turn();
        switch (after_turn()) {
        case next_step::run:
            parker_.lap_if_due();
            poll();
            break;
        case next_step::stop:
            break;
        case next_step::wait:
            if (submissions_.in_flight() == 0 && timers_.size() == 0 &&
                deadlock_detection::reports(*this)) [[unlikely]] {
                break; // the handler may have made tasks ready
            }
            wait();
            if (round_.is_over()) {
                cancel_detached_operations();
                return; // messages that have arrived since are for the next round
            }
            break;
        case next_step::end:
            if (submissions_.in_flight() == 0) {
                return;
            }
            cancel_detached_operations();
            break;
        }
    }
} catch (...) {
    shut_down();
    throw;
}

/// Ends like park(): once the loop is announced as asleep, a message causes a call of
/// sim_driver::wake().
turn_report event_loop::turn() {
    using enum turn_report::kind;
    const scope here(*this);
    wake_up();
    turn_report report = driven_turn();
    if (report.what != busy) {
        driver_.get()->let_others_act();
        if (!driver_.fall_asleep(inbox_)) {
            return {.what = busy};
        }
    }
    return report;
}

turn_report event_loop::driven_turn() try {
    using enum turn_report::kind;
    if (stop_.requested() || shutdown_.is_active()) {
        return shutdown_.turn();
    }
    run_turn();
    ring_.enter(0, nullptr, 0); // submits; a driven loop never waits
    reap();
    metrics_.ready.set(ready_.size());
    const next_step next = after_turn();
    if (next == next_step::run || next == next_step::stop || ring_->has_completions() ||
        ring_->overflowed() || !inbox_.empty()) {
        return {.what = busy};
    }
    if (next == next_step::end) {
        return {.what = finished};
    }
    std::int64_t until = next_deadline();
    if (ring_->sq_ready() > 0 || submissions_.sq_starved()) {
        until = std::min(until, now_ns() + refused_park_ns);
    }
    return {.what = idle, .until_ns = until};
} catch (...) {
    shut_down();
    throw;
}

void event_loop::begin_turns(sim_driver& driver) {
    if (!begin_running()) {
        throw std::logic_error("coil: a context is driven while it is already running");
    }
    try {
        ring_.bind_to_this_thread();
    } catch (...) {
        end_running();
        throw;
    }
    driver_.begin(driver);
    begin_own_run();
    probe_.rest();
    meter_.reset(now_ns());
}

void event_loop::end_turns() noexcept {
    {
        const scope here(*this);
        wake_up();
        shut_down();
        ring_->unregister_ring_fd();
    }
    driver_.end();
    end_running();
}

} // namespace coil::detail
