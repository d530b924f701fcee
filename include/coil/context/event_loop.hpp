#pragma once

#include <coil/base/assert.hpp>
#include <coil/context/away_list.hpp>
#include <coil/context/detail/cancellation.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/driver_link.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/loop_shutdown.hpp>
#include <coil/context/detail/parker.hpp>
#include <coil/context/detail/posted_functions.hpp>
#include <coil/context/detail/round_member.hpp>
#include <coil/context/detail/stop_requests.hpp>
#include <coil/context/detail/submission.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/context/detail/turn_budget.hpp>
#include <coil/context/inbox.hpp>
#include <coil/context/listed_loop.hpp>
#include <coil/context/live_metrics.hpp>
#include <coil/context/loop_signals.hpp>
#include <coil/context/metrics.hpp>
#include <coil/context/options.hpp>
#include <coil/context/ready_probe.hpp>
#include <coil/context/timer_wheel.hpp>
#include <coil/context/turn_meter.hpp>
#include <coil/context/zero_copy_set.hpp>
#include <coil/core/list_node.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/queue.hpp>
#include <coil/core/ready_queue.hpp>
#include <coil/uring/ring.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

namespace coil {
class io_context;
class runtime;
} // namespace coil

namespace coil::detail {

class sim_driver;
struct turn_report;

/// The machine inside an io_context: one thread, one ring, one ready queue, one timer wheel, one
/// inbox. Owner thread, except what says "any thread".
///
/// A turn: resume ready coroutines within a budget, take in the inbox, fire timers, then one
/// `enter` that submits what the coroutines asked for and, only when nothing is ready, waits; then
/// route completions to the ready queue. No coroutine runs while completions are being routed.
///
/// Its parts are classes of their own, most of them in context/detail: the ring, submission and
/// cancellation, tasks, posted functions, requests to stop and to kill, shutdown, parker.
class event_loop : public listed_loop {
public:
    event_loop(io_context& context, const io_context_options& options);
    ~event_loop();
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    // ---- running

    /// Runs on this thread until no task is left or stop() was called. Not from inside a coroutine
    /// of the same loop.
    void run();
    /// Any thread.
    void stop() noexcept;
    /// After run() ended on another thread: requests to stop that came too late for it are void.
    void forget_stop() noexcept { signals_.stop.forget(); }
    /// Any thread: run() does not return for lack of work between these two.
    void hold_work_guard() noexcept;
    void release_work_guard() noexcept;
    /// While it does not run: destroys the tasks that were posted and never started.
    void discard_messages() noexcept;

    // Instead of run(): a driver calls turn(), which never waits, beside other loops on the same
    // thread. Turns of several loops may be nested.

    /// From now on turn() may be called, on this thread. `driver` is told what a thread of the
    /// loop's own would have done. Throws as run() does.
    void begin_turns(sim_driver& driver);
    /// One turn. When a stop was asked for it is a shutdown, after which there is nothing to do.
    turn_report turn();
    /// A shutdown; then run() or begin_turns() may be called again.
    void end_turns() noexcept;
    /// Null for a loop with a thread of its own.
    [[nodiscard]] sim_driver* driver() const noexcept { return driver_.get(); }

    // A runtime's round.

    /// Before any other thread knows the loop: it is one of a runtime's, and run() ends when all
    /// that share `common_end` have nothing left to do.
    void set_runtime(runtime& owner, quiescence& common_end) noexcept {
        round_.set_runtime(owner, common_end);
    }
    /// The runtime that it is part of, or null.
    [[nodiscard]] runtime* owning_runtime() const noexcept { return round_.owner(); }
    /// While it does not run: its next run() is in a round with the others.
    void join_round() noexcept {
        round_.join_round();
        hold_work_guard();
    }
    /// Instead of run(), when that cannot be called after all.
    void leave_round() noexcept {
        if (round_.leave_round()) {
            release_work_guard();
        }
    }

    // ---- the ready queue

    void make_ready(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        ready_.push(node, coroutine);
    }
    /// Takes a waiter that was made ready out again; false when it has been resumed meanwhile.
    /// Quick also for the last of very many.
    bool withdraw(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        return ready_.remove(node, coroutine);
    }
    /// Whether this turn is about to enter the kernel for others anyway, or may: then one more
    /// entry costs less than a system call.
    [[nodiscard]] bool submits_for_others() const noexcept {
        return ring_->sq_ready() > 0 || !ready_.empty();
    }

    // ---- messages

    /// Any thread: `node.deliver` runs on the owner thread. It makes something ready, and runs no
    /// code of the program's.
    void post(queue_node& node) noexcept {
        if (inbox_.push(node)) {
            round_.become_active();
            wake();
        }
    }
    /// `node.deliver` is called in a later turn, in order; or in a shutdown, which it sees by
    /// is_ending(). For what runs code of the program's, which is not called while the inbox is
    /// being delivered.
    void defer(queue_node& node) noexcept { functions_.push(node); }
    /// Delivers what is in the inbox now.
    void deliver_inbox() noexcept;
    /// Whether something has come that run() has not looked at.
    [[nodiscard]] bool has_messages() const noexcept {
        return !inbox_.empty() || signals_.delivered_idle.load(std::memory_order_relaxed);
    }
    /// A deferred function is asked whether its result is still wanted, and not called.
    [[nodiscard]] bool is_refusing() const noexcept { return functions_.is_refusing(); }

    // ---- top-level tasks (the states: core/detail/task_state.hpp)

    /// Makes it ready as well.
    void add_task(promise_base& task, std::coroutine_handle<> coroutine) noexcept {
        COIL_ASSERT(on_owner_thread());
        tasks_.add(task);
        ready_.push(task, coroutine);
    }
    /// Any thread: posts a new task, whose `deliver` calls receive_task().
    void post_task(promise_base& task) noexcept {
        begin_spawned(task);
        sent_tasks_.fetch_add(1, std::memory_order_relaxed);
        post(task);
    }
    void receive_task(promise_base& task, std::coroutine_handle<> coroutine) noexcept {
        tasks_.receive(task);
        ready_.push(task, coroutine);
    }
    /// A coroutine comes from elsewhere, and its top-level task (or null) with it. Makes it ready.
    void adopt_remote(promise_base* task, queue_node& node,
                      std::coroutine_handle<> coroutine) noexcept {
        if (task != nullptr) {
            adopt(*task);
        }
        ready_.push(node, coroutine);
    }
    /// A task that comes from elsewhere is one of this loop's from now on; its coroutine runs here
    /// already.
    void adopt(promise_base& task) noexcept {
        tasks_.adopt(task);
        if (task.owner().is_remote_child) [[unlikely]] {
            task.owner().moved_to(this);
        }
    }
    /// The task leaves its loop, on whose thread this is called, and will be posted to another.
    static void begin_move(promise_base& task) noexcept {
        tell_that_it_leaves(task);
        begin_moving(task);
    }
    /// The task leaves its loop, on whose thread this is called, and goes on where no context is.
    static void disown(promise_base& task) noexcept {
        tell_that_it_leaves(task);
        leave_context(task);
    }
    /// The task has ended, on this thread, and its frame is about to be destroyed.
    static void task_ended(promise_base& task) noexcept {
        tell_that_it_leaves(task);
        end_task(task);
    }
    /// Looks at the newest first.
    [[nodiscard]] bool has_task(const promise_base& task) const noexcept {
        return tasks_.has(task);
    }
    /// Any thread: how many top-level tasks it has or will have, as far as it has published that. A
    /// task that gives out work sees the tasks of its own loop as they are.
    [[nodiscard]] std::uint64_t load() const noexcept {
        return tasks_.load(sent_tasks_.load(std::memory_order_relaxed), on_owner_thread());
    }
    void report_unhandled(std::exception_ptr error) noexcept;

    // ---- for destructors
    // An await that something elsewhere ends may be destroyed first. Its destructor waits, and what
    // it waits for may need a coroutine of this loop that will not run again: then both would wait.
    // So it serves what others wait for on this loop.

    /// The awaits of this loop that something elsewhere will end.
    [[nodiscard]] away_node*& away() noexcept { return tasks_.away(); }
    /// Before all children of a nursery are destroyed, one after the other: requests at once what
    /// they have elsewhere, as far as that is found in a time proportional to their number.
    void destroy_away_below(const nursery& parent, std::size_t children) noexcept {
        tasks_.destroy_away_below(parent, 4 * children);
    }
    /// Blocks until something has come by the inbox, and delivers it. No coroutine runs, and no
    /// posted function. Returns after a while also without: after a millisecond, or later when it
    /// is `late`.
    void wait_for_messages(bool late = false) noexcept;
    /// From a wait: waiters for the results of this loop's tasks and functions that are no longer
    /// wanted are told that there will be none. These tasks do not run meanwhile, and the waiters
    /// may be what is waited for.
    void refuse_unwanted() noexcept;
    /// Before a wait: contexts that do not run take in what was posted to them, and what is there
    /// and no longer wanted is destroyed (event_loop_service.cpp).
    static void service_idle_loops() noexcept;
    /// In a shutdown: destroys the remote children, as far as nothing of theirs is elsewhere.
    void abandon_remote_children() noexcept;
    /// From a wait for `root`, whose end was requested: destroys it if it is a remote child here,
    /// and the remote children here that it waits for, directly or by tasks of other executors.
    /// None of them could run before the destructor returns.
    void abandon_tree(const promise_base& root) noexcept;
    /// A remote child is to be destroyed: before the next turn, or in a destructor that waits.
    void note_kill_request(remote_child_owner& child) noexcept { kills_.note(child); }
    /// From a wait: those that have come since, since none of them can run before it returns.
    void serve_kill_requests() noexcept { kills_.process_arrived(); }
    [[nodiscard]] destructor_waits& waiting_destructors() noexcept { return destructor_waits_; }
    /// See destructor_waits::epoch().
    [[nodiscard]] std::uint64_t wait_epoch() const noexcept { return destructor_waits_.epoch(); }

    // ---- timers

    [[nodiscard]] std::int64_t now_ns() noexcept { return ring_.now_ns(); }
    [[nodiscard]] bool arm(timer_node& node, std::int64_t deadline_ns) noexcept {
        return timers_.arm(node, deadline_ns, timers_.size() == 0 ? now_ns() : 0);
    }
    void disarm(timer_node& node) noexcept { timers_.disarm(node); }

    // ---- ring work

    [[nodiscard]] submission& submissions() noexcept { return submissions_; }
    [[nodiscard]] cancellation& cancellations() noexcept { return cancellations_; }
    [[nodiscard]] bool submit_at_once(sqe_slot& entry) noexcept {
        return submissions_.submit_at_once(ring_, entry);
    }
    /// Blocks until `wait` is no longer pending. Other completions are routed, no coroutine runs.
    void drain(const io_op& wait) noexcept;

    [[nodiscard]] zero_copy_set& zero_copies() noexcept { return zero_copies_; }

    // What is registered with the ring.
    int use_direct_descriptors() noexcept {
        return ring_.tables().use_files(*ring_, options_.direct_descriptors);
    }
    void close_direct(int slot) noexcept { ring_.tables().close_file(slot); }
    /// A number that no other table of direct descriptors in this process has; 0: there is none.
    [[nodiscard]] std::uint32_t direct_table() const noexcept {
        return ring_.tables().files_number();
    }
    int add_buffers(std::span<const ::iovec> memory) noexcept {
        return ring_.tables().add_buffers(*ring_, options_.registered_buffers, memory);
    }
    void remove_buffers(unsigned first, unsigned count) noexcept {
        ring_.tables().remove_buffers(first, count);
    }
    void attach(ring_attachment& attachment) noexcept { ring_.attach(attachment); }
    void detach(ring_attachment& attachment) noexcept { loop_ring::detach(attachment); }
    /// A number that no buffer ring of this loop has had lately.
    [[nodiscard]] std::uint16_t next_buffer_group() noexcept { return ring_.next_buffer_group(); }
    [[nodiscard]] bool skips_completions() const noexcept { return ring_.skips_completions(); }
    [[nodiscard]] uring::ring& ring() noexcept { return *ring_; }
    /// Null while the ring is closed.
    [[nodiscard]] uring::backend* backend() noexcept {
        return ring_.is_open() ? &ring_->get_backend() : nullptr;
    }

    // ---- what it is doing

    [[nodiscard]] bool on_owner_thread() const noexcept { return current_loop == this; }
    /// Whether its own read of the wake-up descriptor is in flight.
    [[nodiscard]] bool is_watching() const noexcept { return parker_.descriptor().is_watched(); }
    /// run() is about to end: what is in flight is being cancelled for that reason alone.
    [[nodiscard]] bool is_ending() const noexcept { return shutdown_.is_active(); }
    [[nodiscard]] io_context& context() noexcept { return context_; }
    /// Any thread.
    [[nodiscard]] context_metrics metrics() const noexcept;

private:
    friend class loop_shutdown;
    class scope;         // code of this loop runs on this thread
    class running_scope; // what holds while run() is active

    // A turn.
    enum class next_step : std::uint8_t { run, stop, wait, end };
    void run_turn();
    [[nodiscard]] next_step after_turn() const noexcept;
    void run_until_done();
    [[nodiscard]] turn_report driven_turn();
    [[nodiscard]] bool run_ready();
    unsigned run_probed(unsigned left);
    void end_turn(bool full) noexcept;
    void publish() noexcept;
    [[nodiscard]] bool has_work() const noexcept {
        return !tasks_.empty() || submissions_.has_work();
    }

    // Waiting.
    void poll() noexcept;
    void poll_cq() noexcept;
    void wait() noexcept;
    void park(std::int64_t until_ns) noexcept;
    [[nodiscard]] std::int64_t next_deadline() noexcept;
    void reap() noexcept;
    void route(const uring::cqe& completion) noexcept;
    void wake() noexcept;
    void wake_up() noexcept;
    void stop_watching() noexcept;

    // Ending.
    void shut_down() noexcept {
        shutdown_.run();
        stop_.complete();
    }
    void cancel_everything(std::uint32_t at_most) noexcept;
    void cancel_detached_operations() noexcept;
    void begin_own_run() noexcept;
    void service() noexcept;
    void refuse_unwanted_functions() noexcept;
    static void tell_that_it_leaves(promise_base& task) noexcept {
        if (task.owner().is_remote_child && !is_unowned(task)) [[unlikely]] {
            task.owner().moved_to(nullptr);
        }
    }

    // Touched by every await.
    loop_ring ring_;
    turn_budget budget_;
    submission submissions_;
    timer_wheel timers_;
    cancellation cancellations_;
    task_list tasks_;
    posted_functions functions_{ready_};
    zero_copy_set zero_copies_;
    live_metrics metrics_;
    stop_requests stop_;
    destructor_waits destructor_waits_;
    kill_requests kills_{tasks_, destructor_waits_};
    loop_shutdown shutdown_{*this};
    driver_link driver_;
    round_member round_;
    io_context& context_;
    const io_context_options& options_;

    alignas(64) ready_queue ready_;
    ready_probe probe_;
    turn_meter meter_;
    parker parker_;

    // Written by every thread that posts. Nothing else is on this line.
    alignas(128) inbox inbox_;
    std::atomic<std::uint64_t> sent_tasks_{0}; // ever

    // Written by other threads now and then, read by the loop in every turn.
    alignas(128) loop_signals signals_;
};

} // namespace coil::detail
