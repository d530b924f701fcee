#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/awaited_descriptors.hpp>
#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/cancellation.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/destructor_waits.hpp>
#include <coil/context/detail/driver_link.hpp>
#include <coil/context/detail/inbox.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/kill_requests.hpp>
#include <coil/context/detail/listed_loop.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/loop_shutdown.hpp>
#include <coil/context/detail/loop_signals.hpp>
#include <coil/context/detail/parker.hpp>
#include <coil/context/detail/posted_functions.hpp>
#include <coil/context/detail/probes.hpp>
#include <coil/context/detail/ready_probe.hpp>
#include <coil/context/detail/round_member.hpp>
#include <coil/context/detail/stop_requests.hpp>
#include <coil/context/detail/submission.hpp>
#include <coil/context/detail/task_list.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/context/detail/turn_budget.hpp>
#include <coil/context/detail/turn_meter.hpp>
#include <coil/context/detail/zero_copy_set.hpp>
#include <coil/context/metrics.hpp>
#include <coil/context/options.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/ready_queue.hpp>
#include <coil/uring/ring.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

namespace coil {
class io_context;
class runtime;
} // namespace coil

namespace coil::detail {

class sim_driver;
struct turn_report;

/// The implementation of an io_context: one thread, one ring, one ready queue, one timer wheel, one
/// inbox. Members may be called on the owner thread only, unless documented as "any thread".
///
/// A turn resumes ready coroutines within a budget, delivers the inbox, and fires timers. It enters
/// the kernel if there is something to submit or, if nothing is ready, to wait for, and routes
/// completions to the ready queue. No coroutine runs while completions are being routed.
///
/// Its parts are classes in context/detail, such as submission, task_list, parker and
/// loop_shutdown.
class event_loop : public listed_loop {
public:
    event_loop(io_context& context, const io_context_options& options);
    ~event_loop();
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    // ---- running

    /// Runs on this thread until no task is left or stop() was called. Must not be called by a
    /// coroutine of the same loop.
    void run();
    /// Any thread.
    void stop() noexcept;
    /// Called after run() has returned on another thread: discards stop requests that arrived too
    /// late for that run.
    void forget_stop() noexcept { signals_.stop.forget(); }
    /// Any thread. Between these two calls, run() does not return for lack of work.
    void hold_work_guard() noexcept;
    void release_work_guard() noexcept;
    /// Called while the loop does not run: destroys tasks that were posted but not started.
    void discard_messages() noexcept;

    // An alternative to run(): a driver calls turn(), which never waits, for several loops on one
    // thread. Turns of several loops may be nested.
    /// From now on turn() may be called, on this thread. `driver` replaces the loop's own thread.
    /// Throws like run().
    void begin_turns(sim_driver& driver);
    /// Runs one turn. After a stop request, each turn executes a step of the shutdown until that is
    /// complete.
    turn_report turn();
    /// Shuts down; then run() or begin_turns() may be called again.
    void end_turns() noexcept;
    /// Null for a loop with a thread of its own.
    [[nodiscard]] sim_driver* driver() const noexcept { return driver_.get(); }

    // A runtime's round.
    /// Makes the loop part of a runtime: its run() ends when all loops that share `common_end` have
    /// no work left. Called before any other thread knows the loop.
    void set_runtime(runtime& owner, quiescence& common_end) noexcept {
        round_.set_runtime(owner, common_end);
    }
    /// The runtime to which the loop belongs, or null.
    [[nodiscard]] runtime* owning_runtime() const noexcept { return round_.owner(); }
    /// Called while the loop does not run: its next run() takes part in a round of the runtime.
    void join_round() noexcept {
        round_.join_round();
        hold_work_guard();
    }
    /// Called after join_round() if run() cannot be called after all.
    void leave_round() noexcept {
        if (round_.leave_round()) {
            release_work_guard();
        }
    }

    // ---- the ready queue

    void make_ready(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        ready_.push(node, coroutine);
    }
    /// Removes a waiter from the ready queue: amortised O(1). False if it was resumed already.
    bool withdraw(queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        return ready_.remove(node, coroutine);
    }
    [[nodiscard]] bool spend_immediate_await() noexcept { return ready_.spend_immediate_await(); }
    /// Whether this turn will, or may, enter the kernel for other operations: one more SQE then
    /// costs less than a system call.
    [[nodiscard]] bool submits_for_others() const noexcept {
        return ring_->sq_ready() > 0 || !ready_.empty();
    }

    // ---- messages

    /// Any thread. `node.deliver` is called on the owner thread. It may make coroutines ready but
    /// must not run user code.
    void post(queue_node& node) noexcept {
        check_exists();
        if (inbox_.push(node)) {
            round_.become_active();
            wake();
        }
    }
    /// `node.deliver` is called in a later turn, in order, or during a shutdown, which is_ending()
    /// reports. For nodes that run user code, which must not run while the inbox is being
    /// delivered.
    void defer(queue_node& node) noexcept { functions_.push(node); }
    /// Delivers the messages that are now in the inbox.
    void deliver_inbox() noexcept;
    /// Whether messages have arrived that run() has not yet processed.
    [[nodiscard]] bool has_messages() const noexcept {
        return !inbox_.empty() || signals_.delivered_idle.load(std::memory_order_relaxed);
    }
    /// While true, `node.deliver` of a deferred function only checks whether its result is still
    /// wanted, and does not call the function.
    [[nodiscard]] bool is_refusing() const noexcept { return functions_.is_refusing(); }

    // ---- top-level tasks (the states: core/detail/task_state.hpp)

    /// Adds a task and makes it ready.
    void add_task(promise_base& task, std::coroutine_handle<> coroutine) noexcept {
        COIL_ASSERT(on_owner_thread());
        observe_spawn(task);
        tasks_.add(task);
        ready_.push(task, coroutine);
    }
    /// Any thread: posts a new task, whose `deliver` calls receive_task().
    void post_task(promise_base& task) noexcept {
        begin_spawned(task);
        observe_spawn(task);
        sent_tasks_.fetch_add(1, std::memory_order_relaxed);
        post(task);
    }
    void receive_task(promise_base& task, std::coroutine_handle<> coroutine) noexcept {
        tasks_.receive(task);
        ready_.push(task, coroutine);
    }
    /// Makes a coroutine from another context or executor ready. Adopts `task` unless null.
    void adopt_remote(promise_base* task, queue_node& node,
                      std::coroutine_handle<> coroutine) noexcept {
        if (task != nullptr) {
            adopt(*task);
        }
        ready_.push(node, coroutine);
    }
    /// Adopts a task that arrives from another context or executor, already running.
    void adopt(promise_base& task) noexcept {
        tasks_.adopt(task);
        if (task.owner().is_remote_child) [[unlikely]] {
            task.owner().moved_to(this);
        }
    }
    /// The task leaves its loop, on whose thread this is called, and will be posted to another.
    static void begin_move(promise_base& task) noexcept {
        task_list::tell_that_it_leaves(task);
        begin_moving(task);
    }
    /// The task leaves its loop, on whose thread this is called, and continues outside of any
    /// context.
    static void disown(promise_base& task) noexcept {
        task_list::tell_that_it_leaves(task);
        leave_context(task);
    }
    /// The task has ended, on this thread, and its frame is about to be destroyed.
    static void task_ended(promise_base& task) noexcept {
        task_list::tell_that_it_leaves(task);
        end_task(task);
    }
    /// Searches from the newest task to the oldest.
    [[nodiscard]] bool has_task(const promise_base& task) const noexcept {
        return tasks_.has(task);
    }
    /// Any thread. The number of top-level tasks, including those on their way to the loop, as last
    /// published. On the owner thread the number is exact.
    [[nodiscard]] std::uint64_t load() const noexcept {
        return tasks_.load(sent_tasks_.load(std::memory_order_relaxed), on_owner_thread());
    }
    void report_unhandled(std::exception_ptr error, task_label task) noexcept;
    [[nodiscard]] listed_children*& listed_nurseries() noexcept { return tasks_.nurseries(); }

    // ---- for destructors
    // The await of a remote operation may be destroyed before the operation has ended. Its
    // destructor waits, and the remote operation may in turn wait for a coroutine of this loop,
    // which does not run meanwhile. To avoid the deadlock, the destructor also serves the requests
    // to this loop. A destructor on a side stack leaves that to the thread's own stack.

    /// This loop's tasks, and their awaits of remote operations.
    [[nodiscard]] task_list& tasks() noexcept { return tasks_; }
    /// Called before a nursery destroys its children one after the other: requests the destruction
    /// of their remote children, so that these end concurrently. The search may miss some.
    void destroy_away_below(const nursery& parent, std::size_t children) noexcept {
        tasks_.destroy_away_below(parent, 4 * children);
    }
    /// Blocks until messages have arrived in the inbox, and delivers them; runs no coroutines or
    /// functions. Without a message, returns after 1 ms (0.1 ms outside of run()), 10 ms if `late`.
    void wait_for_messages(bool late = false) noexcept;
    /// Called by a waiting destructor: ends awaits on other threads that wait for tasks or
    /// functions of this loop but no longer want the result. The tasks and functions cannot run
    /// while the destructor waits, and the destructor may be waiting for one of these awaits.
    void refuse_unwanted() noexcept;
    /// Called before a destructor or a shutdown waits: delivers the messages of contexts that do
    /// not run, and destroys their unwanted remote children (event_loop_service.cpp).
    static void service_idle_loops() noexcept;
    /// In a shutdown: destroys, on side stacks, the remote children that await nothing remote.
    void abandon_remote_children() noexcept;
    /// Called by a destructor that waits for `root`, which was asked to end: destroys `root` if it
    /// is a remote child on this loop, and the remote children on this loop that it waits for,
    /// directly or through tasks of other executors. None could run before the destructor returns.
    void abandon_tree(const promise_base& root) noexcept;
    /// Requests to destroy remote children, before the next turn or in a waiting destructor.
    [[nodiscard]] kill_requests& kills() noexcept { return kills_; }
    [[nodiscard]] destructor_waits& waiting_destructors() noexcept { return destructor_waits_; }
    /// See destructor_waits::epoch().
    [[nodiscard]] std::uint64_t wait_epoch() const noexcept { return destructor_waits_.epoch(); }

    // ---- timers

    [[nodiscard]] std::int64_t now_ns() noexcept { return ring_.now_ns(); }
    /// The same as a time_point. While the ring is closed, the time of std::chrono::steady_clock.
    [[nodiscard]] std::chrono::steady_clock::time_point now() noexcept;
    [[nodiscard]] bool arm(timer_call& timer, std::int64_t deadline_ns) noexcept {
        return timers_.arm(timer, deadline_ns, timers_.size() == 0 ? now_ns() : 0);
    }
    [[nodiscard]] bool arm(sleep_timer& timer, std::int64_t deadline_ns) noexcept {
        return timers_.arm(timer, deadline_ns, timers_.size() == 0 ? now_ns() : 0);
    }
    void disarm(timer_node& node) noexcept { timers_.disarm(node); }

    // ---- ring work

    [[nodiscard]] submission& submissions() noexcept { return submissions_; }
    [[nodiscard]] cancellation& cancellations() noexcept { return cancellations_; }
    [[nodiscard]] bool submit_at_once(sqe_slot& entry) noexcept {
        return submissions_.submit_at_once(ring_, entry);
    }
    /// Blocks until `wait` is no longer pending. Routes other completions but runs no coroutine.
    void drain(const io_op& wait) noexcept;
    [[nodiscard]] zero_copy_set& zero_copies() noexcept { return zero_copies_; }
    [[nodiscard]] awaited_descriptors& descriptors() noexcept { return descriptors_; }

    // Resources registered with the ring.
    int use_direct_descriptors() noexcept {
        return ring_.tables().use_files(*ring_, options_.direct_descriptors);
    }
    void close_direct(int slot) noexcept { ring_.tables().close_file(slot); }
    /// Identifies the table of direct descriptors within the process; 0 if there is no table.
    [[nodiscard]] std::uint32_t direct_table() const noexcept {
        return ring_.tables().files_number();
    }
    int add_buffers(std::span<const ::iovec> memory) noexcept;
    void remove_buffers(unsigned first, unsigned count) noexcept {
        ring_.tables().remove_buffers(first, count);
    }
    void attach(ring_attachment& attachment) noexcept { ring_.attach(attachment); }
    void detach(ring_attachment& attachment) noexcept { loop_ring::detach(attachment); }
    /// A buffer group ID that this loop has not used recently.
    [[nodiscard]] std::uint16_t next_buffer_group() noexcept { return ring_.next_buffer_group(); }
    [[nodiscard]] bool skips_completions() const noexcept { return ring_.skips_completions(); }
    [[nodiscard]] uring::ring& ring() noexcept { return *ring_; }
    /// Null while the ring is closed.
    [[nodiscard]] uring::backend* backend() noexcept {
        return ring_.is_open() ? &ring_->get_backend() : nullptr;
    }

    // ---- state

    [[nodiscard]] bool on_owner_thread() const noexcept { return current_loop == this; }
    /// Whether the loop's own read of the wake-up descriptor is in flight.
    [[nodiscard]] bool is_watching() const noexcept { return parker_.descriptor().is_watched(); }
    /// Whether a shutdown is in progress, which cancels all operations in flight.
    [[nodiscard]] bool is_ending() const noexcept { return shutdown_.is_active(); }
    [[nodiscard]] io_context& context() noexcept { return context_; }
    [[nodiscard]] const ready_queue& ready() const noexcept { return ready_; }
    [[nodiscard]] context_metrics metrics() const noexcept; // any thread

private:
    friend class deadlock_detection;
    friend class kill_requests;
    friend class loop_shutdown;
    friend class suspended_tasks;
    friend class task_capture;
    class scope;         // code of this loop runs on this thread
    class running_scope; // the state that run() sets up and restores

    // A turn.
    enum class next_step : std::uint8_t { run, stop, wait, end };
    void run_turn();
    [[nodiscard]] next_step after_turn() const noexcept;
    void run_until_done();
    [[nodiscard]] turn_report driven_turn();
    [[nodiscard]] bool run_ready();
    unsigned run_probed(unsigned left);
    [[nodiscard]] bool run_observed();
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
    void reap_observed() noexcept;
    void route(const uring::cqe& completion) noexcept;
    void wake() noexcept;
    void wake_up() noexcept;
    void stop_watching() noexcept;

    // Ending.
    void shut_down() noexcept {
        metrics_.ready.set(0); // the watchdog does not watch the shutdown
        shutdown_.run();
        stop_.complete();
    }
    void cancel_everything(std::uint32_t at_most) noexcept;
    void cancel_detached_operations() noexcept;
    void begin_own_run() noexcept;
    void service() noexcept;
    void refuse_unwanted_functions() noexcept;

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
    awaited_descriptors descriptors_;

    alignas(64) ready_queue ready_;
    ready_probe probe_;
    turn_meter meter_;
    parker parker_;

    // Written by every thread that posts. Nothing else is on this line.
    alignas(128) inbox inbox_;
    std::atomic<std::uint64_t> sent_tasks_{0}; // the total since creation

    // Written by other threads occasionally, read by the loop in every turn.
    alignas(128) loop_signals signals_;
};

} // namespace coil::detail
