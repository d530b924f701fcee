#include "event_loop_enter.hpp"

#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/loop_shutdown.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/context/runtime.hpp>
#include <coil/uring/prep.hpp>

#include <chrono>
#include <cstdint>

namespace coil::detail {

/// In a runtime's round the contexts leave together: until the last of them has finished, tasks may
/// arrive here that another context waits for.
void loop_shutdown::run() noexcept {
    round_member& round = loop_.round_;
    const bool in_round = round.takes_part() && loop_.on_owner_thread();
    if (!active_) {
        begin();
        let_others_begin();
    }
    destroy_everything();
    if (in_round) {
        round.finish();
        for (int waited = 0; !round.all_finished();) {
            wait(waited);
            destroy_everything();
        }
    }
    finish();
}

void loop_shutdown::begin() noexcept {
    constexpr std::uint32_t many = 1024;
    COIL_ASSERT(!active_);
    if (loop_.round_.takes_part() && loop_.on_owner_thread()) {
        loop_.round_.owner()->stop(); // otherwise the others would continue without this one
    }
    active_ = true;
    turns_waited_ = 0;
    loop_.tasks_.forget_holders();
    hold_backs_ = {};
    refusals_ = {};
    // Only run() has operations in flight, and its shutdown is on its own thread.
    if (loop_.on_owner_thread()) {
        loop_.submissions_.cancel_queued();
        loop_.cancel_everything(many);
    }
}

/// Delays the destruction of the tasks, and so the requests to other contexts, for a moment:
/// contexts are often stopped together. A running context that is requested to destroy a task with
/// a scope that nothing joins waits in that task's destructor. A context that is shutting down
/// holds back such tasks instead, so no destructor waits.
void loop_shutdown::let_others_begin() noexcept {
    constexpr std::int64_t a_while_ns = 1'000'000;
    if (loop_.is_running() && loop_.driver_.get() == nullptr && loop_.tasks_.has_unknown_owners()) {
        const std::int64_t until = now_ns() + a_while_ns;
        while (now_ns() < until) {
            loop_.wait_for_messages();
        }
    }
}

void loop_shutdown::finish() noexcept {
    COIL_ASSERT(active_ && loop_.tasks_.empty() && !loop_.tasks_.holds_back());
    if (loop_.on_owner_thread()) {
        loop_.cancel_detached_operations();
    }
    clear_ready();
    active_ = false;
}

void loop_shutdown::destroy_everything() noexcept {
    for (int waited = 0;;) {
        switch (step()) {
        case progress::some:
            waited = 0;
            break;
        case progress::waits:
            wait(waited);
            break;
        case progress::done:
            return;
        }
    }
}

/// Does what can be done without waiting. Destructors may post functions, and start tasks.
loop_shutdown::progress loop_shutdown::step() noexcept {
    COIL_ASSERT(active_);
    loop_.deliver_inbox();
    clear_ready();
    loop_.functions_.call_all(loop_);
    update_held_back();
    if (destroy_free_tasks()) {
        return progress::some;
    }
    if (loop_.tasks_.holds_back() || !loop_.tasks_.empty()) {
        return progress::waits;
    }
    loop_.functions_.call_all(loop_);
    return loop_.inbox_.empty() && loop_.tasks_.empty() && loop_.functions_.empty()
               ? progress::done
               : progress::some;
}

void loop_shutdown::update_held_back() noexcept {
    task_list& tasks = loop_.tasks_;
    if (tasks.must_hold_back()) {
        tasks.hold_back();
    } else if (tasks.may_hold_back_less()) {
        visit(hold_backs_, [&tasks]() noexcept { tasks.hold_back(); });
    }
}

void loop_shutdown::refuse_unwanted() noexcept {
    visit(refusals_, [this]() noexcept { loop_.refuse_unwanted(); });
}

/// The current time, also if the loop's ring was never opened.
std::int64_t loop_shutdown::now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(loop_.now().time_since_epoch())
        .count();
}

void loop_shutdown::wait(int& waited) noexcept {
    constexpr int often = 32; // after that a message is unlikely: check less often
    refuse_unwanted();
    event_loop::service_idle_loops();
    if (loop_.inbox_.empty()) {
        loop_.wait_for_messages(++waited > often);
    } else {
        loop_.deliver_inbox();
    }
    if (loop_.tasks_.empty()) {
        loop_.tasks_.set_may_hold_back_less();
    }
    destroy_held_back_if_stuck(waited);
}

/// If the tree is not known, any held-back task may own an outstanding remote operation, which may
/// in turn wait for the destruction of another held-back task. So from time to time these tasks are
/// destroyed, until the tree is known; their destructors wait if they have to.
void loop_shutdown::destroy_held_back_if_stuck(int waited) noexcept {
    constexpr int patience_in_turns = 16; // turns of 1 ms, later of 10 ms
    task_list& tasks = loop_.tasks_;
    if (waited % patience_in_turns != 0) {
        return;
    }
    while (tasks.tree_unknown() && tasks.holds_back()) {
        loop_.destructor_waits_.run_aside([this]() noexcept {
            while (loop_.tasks_.tree_unknown() && loop_.tasks_.holds_back()) {
                clear_ready();
                loop_.tasks_.destroy_newest_held_back();
            }
        });
    }
}

turn_report loop_shutdown::turn() noexcept {
    using enum turn_report::kind;
    constexpr std::int64_t look_again_ns = 1'000'000;
    constexpr int many = 1000; // after that only a message wakes the loop
    if (!active_) {
        begin();
    }
    progress made = progress::some;
    while (made == progress::some) {
        made = step();
    }
    if (made == progress::done) {
        finish();
        loop_.stop_.complete();
        return {.what = loop_.inbox_.empty() ? finished : busy};
    }
    loop_.ring_.enter(0, nullptr, 0);
    loop_.reap();
    refuse_unwanted();
    event_loop::service_idle_loops();
    loop_.tasks_.set_may_hold_back_less();
    if (!loop_.inbox_.empty()) {
        return {.what = busy};
    }
    destroy_held_back_if_stuck(++turns_waited_);
    if (loop_.destructor_waits_.any_aside()) {
        static_cast<void>(destroy_free_tasks()); // the side stacks belong to this thread
        return {.what = busy};
    }
    return {.what = idle,
            .until_ns = turns_waited_ < many ? loop_.now_ns() + look_again_ns : timer_wheel::never};
}

/// Destroys all listed tasks, as far as possible; returns false if there was none. If the tree is
/// not known, remote children may own outstanding remote operations as well; the destructors of
/// these children then wait for the operations, on side stacks. Returns when none waits.
bool loop_shutdown::destroy_free_tasks() noexcept {
    if (loop_.tasks_.away() == nullptr && !loop_.destructor_waits_.any_aside()) {
        const bool any = !loop_.tasks_.empty();
        while (!loop_.tasks_.empty() && !loop_.destructor_waits_.any_aside()) {
            clear_ready();
            loop_.tasks_.destroy_newest();
        }
        return any;
    }
    bool any = destroy_listed();
    for (int waited = 0; loop_.destructor_waits_.any_aside();) {
        any = true;
        loop_.destructor_waits_.resume_aside();
        if (loop_.destructor_waits_.any_aside()) {
            wait(waited);
            clear_ready();
            update_held_back();
        }
        static_cast<void>(destroy_listed());
    }
    return any;
}

/// Destroys the listed tasks on side stacks, except those that a destructor uses. Returns whether
/// there was any.
bool loop_shutdown::destroy_listed() noexcept {
    const std::uint64_t before = destroyed_;
    while (next_unused() != nullptr) {
        loop_.destructor_waits_.run_aside([this]() noexcept {
            while (promise_base* const task = next_unused()) {
                ++destroyed_;
                clear_ready();
                task_list::destroy(*task);
            }
        });
    }
    return destroyed_ != before;
}

promise_base* loop_shutdown::next_unused() const noexcept {
    return loop_.tasks_.newest([](const promise_base& task) noexcept {
        return !destructor_waits::use_of_task::exists(task);
    });
}

/// Discards the ready queue: no coroutine runs in a shutdown.
void loop_shutdown::clear_ready() noexcept {
    loop_.ready_.clear();
    loop_.functions_.lost_turn();
}

// ---- operations

/// Makes one request that cancels all operations in flight, so that slow cancellations overlap.
/// This only saves time: each destroyed frame still cancels its own operation. For each operation
/// that it cancels, the kernel searches all of them; so if there are many, they are left to the
/// frames, whose requests the kernel finds by a hash.
void event_loop::cancel_everything(std::uint32_t at_most) noexcept {
    if (submissions_.in_flight() == 0 || submissions_.in_flight() > at_most || !ring_.reserve(1)) {
        return;
    }
    uring::sqe* entry = ring_->acquire();
    *entry = uring::prep::cancel_any();
    entry->user_data = static_cast<std::uint64_t>(completion_kind::ignore);
    ring_->commit(entry);
    ring_.enter(0, nullptr, 0);
    reap();
}

/// The operations that frames own have ended. Eager operations and streams may have other owners:
/// these are cancelled, as no operation outlives the run.
void event_loop::cancel_detached_operations() noexcept {
    const loop_shutdown::as_active scope(shutdown_);
    while (submissions_.in_flight() > 0 || submissions_.has_queued()) {
        cancel_everything(UINT32_MAX);
        const uring::timespec soon{0, 1'000'000};
        ring_.enter(1, &soon, 0);
        reap();
        cancellations_.retry();
        submissions_.cancel_queued();
    }
}

} // namespace coil::detail
