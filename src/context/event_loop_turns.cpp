// A loop that somebody else drives, a turn at a time.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace coil::detail {

namespace {

constexpr std::int64_t look_again_ns = 1'000'000;

} // namespace

/// Marks this thread as the loop's, above whatever loop it was.
class event_loop::one_turn {
public:
    explicit one_turn(event_loop& loop) noexcept
        : loop_(loop), outer_(std::exchange(current_loop, &loop)) {
        std::swap(task_list::removed_on_this_thread, loop_.tasks_removed_);
    }
    ~one_turn() {
        loop_.publish();
        std::swap(task_list::removed_on_this_thread, loop_.tasks_removed_);
        current_loop = outer_;
    }
    one_turn(const one_turn&) = delete;
    one_turn& operator=(const one_turn&) = delete;

private:
    event_loop& loop_;
    event_loop* outer_;
};

void event_loop::begin_turns(sim_driver& driver) {
    if (!begin_running()) {
        throw std::logic_error("coil: a context is driven while it runs already");
    }
    try {
        ring_.bind_to_this_thread();
    } catch (...) {
        end_running();
        throw;
    }
    driver_ = &driver;
    begin_own_run();
    probe_.rest();
    meter_.reset(now_ns());
}

/// As park() does: a message that comes from here on brings a call of sim_driver::wake().
turn_report event_loop::turn() {
    using enum turn_report::kind;
    const one_turn scope(*this);
    wake_up();
    turn_report report = drive_turn();
    if (report.what != busy) {
        driver_->let_others_act();
        if (!inbox_.try_park()) {
            return {.what = busy};
        }
        asleep_ = true;
    }
    return report;
}

void event_loop::wake_up() noexcept {
    if (std::exchange(asleep_, false) && !inbox_.unpark()) {
        parker_.note_wake_up();
    }
}

turn_report event_loop::drive_turn() {
    using enum turn_report::kind;
    try {
        if (stop_requested_ || ending_) {
            return shutdown_turn();
        }
        run_turn();
        ring_.enter(0, nullptr, 0); // in the place of waiting
        reap();
        metrics_.ready.set(ready_.size());
    } catch (...) {
        shut_down();
        stop_requested_ = false;
        throw;
    }
    if (!ready_.empty() || stop_requested_ || ring_->has_completions() || ring_->overflowed() ||
        !inbox_.empty()) {
        return {.what = busy};
    }
    if (!has_work()) {
        return {.what = finished};
    }
    std::int64_t until = next_deadline();
    if (ring_->sq_ready() > 0 || submissions_.sq_starved()) {
        until = std::min(until, now_ns() + look_again_ns);
    }
    return {.what = idle, .until_ns = until};
}

/// One step of a shutdown, which others may need turns to go on with: nothing waits, and so
/// shutdowns of several loops are not nested.
turn_report event_loop::shutdown_turn() noexcept {
    using enum turn_report::kind;
    if (!ending_) {
        begin_shutdown();
        turns_waited_ = 0;
    }
    shutdown_state state = shutdown_state::goes_on;
    while (state == shutdown_state::goes_on) {
        state = go_on_with_shutdown();
    }
    if (state == shutdown_state::over) {
        finish_shutdown();
        stop_requested_ = false;
        return {.what = inbox_.empty() ? finished : busy};
    }
    ring_.enter(0, nullptr, 0);
    reap();
    refuse_unwanted();
    service_idle_loops();
    if (!inbox_.empty()) {
        return {.what = busy};
    }
    destroy_one_if_stuck(++turns_waited_);
    constexpr int many = 1000; // then only a message helps
    return {.what = idle,
            .until_ns = turns_waited_ < many ? now_ns() + look_again_ns : timer_wheel::never};
}

bool event_loop::serve_destructor_wait() noexcept {
    if (innermost_wait_ == nullptr) {
        return false;
    }
    // The count of the loop whose turn it is must not change.
    const std::uint64_t removed = task_list::removed_on_this_thread;
    event_loop* const outer = std::exchange(current_loop, this);
    deliver_inbox();
    innermost_wait_->serve();
    current_loop = outer;
    removed_while_served_ += task_list::removed_on_this_thread - removed;
    task_list::removed_on_this_thread = removed;
    return true;
}

void event_loop::end_turns() noexcept {
    {
        const one_turn scope(*this);
        wake_up();
        shut_down();
        stop_requested_ = false;
        ring_->unregister_ring_fd();
    }
    driver_ = nullptr;
    end_running();
}

} // namespace coil::detail
