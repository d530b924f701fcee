#pragma once

#include <coil/context/away_list.hpp>
#include <coil/context/detail/cancellation.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/parker.hpp>
#include <coil/context/detail/posted_functions.hpp>
#include <coil/context/detail/round_member.hpp>
#include <coil/context/detail/submission.hpp>
#include <coil/context/detail/turn_budget.hpp>
#include <coil/context/inbox.hpp>
#include <coil/context/listed_loop.hpp>
#include <coil/context/live_metrics.hpp>
#include <coil/context/loop_signals.hpp>
#include <coil/context/metrics.hpp>
#include <coil/context/options.hpp>
#include <coil/context/ready_probe.hpp>
#include <coil/context/simulation.hpp>
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

/// The machine inside an io_context: one thread, one ring, one ready queue, one timer wheel, one
/// inbox. Everything is the owner thread's alone, except what says "any thread".
///
/// A turn: resume ready coroutines within a budget, take in the inbox, fire timers, then one
/// `enter` that submits what the coroutines asked for and, only when nothing is ready, waits; then
/// route completions to the ready queue. No coroutine runs while completions are being routed.
class event_loop : public listed_loop {
public:
    /// A destructor that waits for something elsewhere, on the owner thread. Scopes nest.
    class destructor_wait {
    public:
        explicit destructor_wait(event_loop& loop) noexcept
            : loop_(loop), outer_(std::exchange(loop.innermost_wait_, this)) {
            ++loop.waits_;
        }
        destructor_wait(const destructor_wait&) = delete;
        destructor_wait& operator=(const destructor_wait&) = delete;
        /// Ends what it can of what others wait for on this loop, without waiting.
        virtual void serve() noexcept = 0;

    protected:
        ~destructor_wait() {
            ++loop_.waits_;
            loop_.innermost_wait_ = outer_;
        }
        event_loop& loop_;

    private:
        destructor_wait* const outer_;
    };

    event_loop(io_context& context, const io_context_options& options);
    ~event_loop();
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    /// Runs on this thread until no root is left or stop() was called. Not from inside a coroutine
    /// of the same loop.
    void run();
    /// Any thread.
    void stop() noexcept;
    /// After run() ended on another thread: requests to stop that came too late for it are void.
    void forget_stop() noexcept { stop_.forget(); }

    // Instead of run(): somebody else drives the loop, a turn at a time and without ever waiting,
    // beside other loops on the same thread. Turns of several loops may be nested.

    /// From now on turn() may be called, on this thread. `around` is told what a thread of the
    /// loop's own would have done. Throws as run() does.
    void begin_turns(simulation& around);
    /// One turn. When a stop was asked for it is a shutdown, after which there is nothing to do.
    turn_report turn();
    /// A shutdown; then run() or begin_turns() may be called again.
    void end_turns() noexcept;
    /// Who drives it; null for a loop with a thread of its own.
    [[nodiscard]] simulation* around() const noexcept { return around_; }

    /// While it does not run: destroys the tasks that were posted and never started.
    void discard_mail() noexcept;
    /// Any thread: run() does not return for lack of work between hold() and release().
    void hold() noexcept;
    void release() noexcept;

    // Ready queue.
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

    /// Before anybody else knows the loop: it is one of a runtime's, and run() ends when all that
    /// share `common_end` have nothing left to do.
    void take_part_in(runtime& home, quiescence& common_end) noexcept {
        round_.join(home, common_end);
    }
    /// The runtime that it is part of, or null.
    [[nodiscard]] runtime* home() const noexcept { return round_.owner(); }
    /// While it does not run: its next run() is in a round with the others.
    void take_seat() noexcept {
        round_.take_part();
        hold();
    }
    /// Instead of run(), when that cannot be called after all.
    void give_up_seat() noexcept {
        if (round_.give_up()) {
            release();
        }
    }
    /// Whether something has come that it has not looked at.
    [[nodiscard]] bool has_mail() const noexcept {
        return !inbox_.empty() || left_over_.load(std::memory_order_relaxed);
    }

    /// Owner thread: `node.deliver` is called in a later turn, in order; or in a shutdown, which it
    /// sees by is_ending(). For what runs code of the program's, which is not called while the
    /// inbox is being delivered.
    void call_later(queue_node& node) noexcept { functions_.push(node); }

    /// Any thread: `node.deliver` runs on the owner thread. It makes something ready, and runs no
    /// code of the program's.
    void post(queue_node& node) noexcept {
        if (inbox_.push(node)) {
            round_.come_back();
            wake();
        }
    }
    /// Runs what is in the inbox now.
    void deliver_inbox() noexcept;

    // Roots: top-level coroutines. add_root makes it ready as well.
    void add_root(promise_base& root, std::coroutine_handle<> coroutine) noexcept {
        roots_.insert(root);
        ready_.push(root, coroutine);
    }
    void report_unhandled(std::exception_ptr error) noexcept;
    /// Any thread: posts a new root, whose `deliver` calls receive_root().
    void send_root(promise_base& root) noexcept {
        sent_roots_.fetch_add(1, std::memory_order_relaxed);
        post(root);
    }
    void receive_root(promise_base& root, std::coroutine_handle<> coroutine) noexcept {
        ++received_roots_;
        add_root(root, coroutine);
    }
    /// A coroutine comes from another loop, and its root (or null) with it. Makes it ready.
    void settle(promise_base* root, queue_node& node, std::coroutine_handle<> coroutine) noexcept {
        if (root != nullptr) {
            adopt(*root);
        }
        ready_.push(node, coroutine);
    }
    /// A root that no loop knew is one of this loop's from now on; its coroutine runs here already.
    void adopt(promise_base& root) noexcept {
        roots_.insert(root);
        if (root.observer().is_guest) [[unlikely]] {
            root.observer().moved_to(this);
        }
    }
    /// A root leaves the loop where it is, on whose thread this is called.
    static void let_go(promise_base& root) noexcept {
        if (root.observer().is_guest) [[unlikely]] {
            root.observer().moved_to(nullptr);
        }
        root_list::remove(root);
    }
    /// Owner thread: a guest is condemned. It ends before the next turn, or in a destructor that
    /// waits.
    void expect_condemned() noexcept { condemned_ = true; }
    /// Counts the destructors that wait, and their ends: what has come since the last of these has
    /// not run.
    [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }
    /// From a destructor that waits: those that have come since, since none of them can run before
    /// it returns.
    void end_condemned_here() noexcept;
    /// From a wait: who waits for one of this loop's tasks, which do not run meanwhile, and may be
    /// what is waited for, is told that there will be no result.
    void refuse_unwanted() noexcept;

    // For the destructor of an await that another thread ends, on the owner thread. Whoever is
    // waited for may need a coroutine of this loop that will not run again: then both would wait.

    /// Blocks until something has come by the inbox, and delivers it. No coroutine runs, and no
    /// posted function. Returns after a while also without: after a millisecond, or later when it
    /// is `late`.
    void wait_for_mail(bool late = false) noexcept;
    /// In a simulation, where the loops share one stack: what the destructor in which this loop
    /// waits would do if it had its turn. False when it waits in none.
    bool serve_wait() noexcept;
    /// For whoever is about to wait: contexts that do not run take in what was posted to them, and
    /// what lies there and is not wanted any more is destroyed (see event_loop_visits.cpp).
    static void visit_others() noexcept;
    /// Owner thread: whether it is one of this loop's. Looks at the newest first.
    [[nodiscard]] bool has_root(const promise_base& root) const noexcept;
    /// In a shutdown, from a destructor that waits: destroys the roots that others wait for, as
    /// far as nothing of theirs is elsewhere.
    void abandon_guests() noexcept;
    /// The awaits of this loop that something elsewhere will end.
    [[nodiscard]] away_node*& away() noexcept { return away_; }
    /// From a destructor that waits for `root`, whose end was requested: destroys it if it is one
    /// of this loop's, and those of this loop's that it waits for, directly or not. None of them
    /// could run before the destructor returns.
    void abandon_tree(const promise_base& root) noexcept;

    /// Any thread: how many top-level tasks it has or will have, as far as it has published that.
    [[nodiscard]] std::uint64_t load() const noexcept;

    // Timers.
    [[nodiscard]] std::int64_t now_ns() noexcept { return ring_.now_ns(); }
    [[nodiscard]] bool arm(timer_node& node, std::int64_t deadline_ns) noexcept {
        return timers_.arm(node, deadline_ns, timers_.size() == 0 ? now_ns() : 0);
    }
    void disarm(timer_node& node) noexcept { timers_.disarm(node); }

    // Ring work, for io_op.
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

    [[nodiscard]] bool on_owner_thread() const noexcept { return current_loop == this; }
    /// Whether its own read of the wake-up descriptor is in flight.
    [[nodiscard]] bool is_watching() const noexcept { return parker_.descriptor().is_watched(); }
    /// What was posted and is not called now is asked whether its result is still wanted.
    [[nodiscard]] bool is_refusing() const noexcept { return refusing_; }
    /// run() is about to end: what is in flight is being cancelled for that reason alone.
    [[nodiscard]] bool is_ending() const noexcept { return ending_; }
    [[nodiscard]] bool skips_completions() const noexcept { return ring_.skips_completions(); }
    [[nodiscard]] io_context& context() noexcept { return context_; }
    [[nodiscard]] uring::ring& ring() noexcept { return *ring_; }
    /// Null while the ring is closed.
    [[nodiscard]] uring::backend* backend() noexcept {
        return ring_.is_open() ? &ring_->get_backend() : nullptr;
    }
    /// Any thread.
    [[nodiscard]] context_metrics metrics() const noexcept;

private:
    class running;  // what holds while run() is active
    class one_turn; // and while turn() is
    [[nodiscard]] turn_report act();
    void wake_up() noexcept;

    void run_turn();
    /// True when it used the budget up.
    bool run_ready();
    unsigned run_probed(unsigned left);
    void end_turn(bool full) noexcept;
    void publish() noexcept;
    void fire_timers() noexcept;
    void poll() noexcept;
    void poll_cq() noexcept;
    void wait() noexcept;
    [[nodiscard]] std::int64_t next_deadline() noexcept;
    void park(std::int64_t until_ns) noexcept;
    void park_after_peak() noexcept;
    void reap() noexcept;
    void route(const uring::cqe& completion) noexcept;
    void turn_until_done();
    void wake() noexcept;
    void stop_watching() noexcept;
    void cancel_everything(std::uint32_t at_most) noexcept;
    enum class shutdown_state : unsigned char { goes_on, waits, over };
    void shut_down() noexcept;
    void begin_shutdown() noexcept;
    [[nodiscard]] shutdown_state go_on_with_shutdown() noexcept;
    void finish_shutdown() noexcept;
    void destroy_everything() noexcept;
    void wait_in_shutdown(int& waited) noexcept;
    void lose_patience(int waited) noexcept;
    [[nodiscard]] turn_report shutdown_turn() noexcept;
    void end_unwanted_guests() noexcept;
    void refuse_unwanted_functions() noexcept;
    void end_condemned_guests() noexcept;
    [[nodiscard]] bool has_something_away(const promise_base& root) noexcept;
    void take_visit() noexcept;
    void take_over_from_visitors() noexcept {
        left_over_.store(false, std::memory_order_relaxed);
        if (std::exchange(stop_came_, false)) {
            stop_requested_ = stop_.arrived();
        }
    }
    void hold_back_roots() noexcept;
    [[nodiscard]] bool destroy_free_roots() noexcept;
    void destroy_root(promise_base& root) noexcept;
    void clear_ready() noexcept;
    void end_what_no_frame_owns() noexcept;
    /// Owner: how many top-level tasks it has.
    [[nodiscard]] std::uint64_t tasks() const noexcept {
        return roots_.inserted() - root_list::removed_on_this_thread;
    }
    [[nodiscard]] bool has_work() const noexcept {
        return !roots_.empty() || submissions_.has_work();
    }

    // Touched by every await.
    loop_ring ring_;
    turn_budget budget_;
    submission submissions_;
    timer_wheel timers_;
    cancellation cancellations_;
    std::int64_t trim_due_ns_ = 0; // after a peak: when the frame cache is returned
    root_list roots_;
    away_node* away_ = nullptr;
    root_chain held_back_;      // in a shutdown: roots that have something elsewhere
    bool tree_unknown_ = false; // ... and whether any root may have it
    posted_functions functions_{ready_};
    zero_copy_set zero_copies_;
    live_metrics metrics_;
    std::uint64_t received_roots_ = 0; // of sent_roots_
    counter balance_;                  // tasks() - received_roots_, as last published
    std::uint64_t roots_removed_ = 0;  // root_list::removed_on_this_thread, while it does not run

    bool stop_requested_ = false;
    bool ending_ = false;
    bool condemned_ = false;    // there are guests that are to be destroyed
    bool ending_guest_ = false; // and one is being destroyed, from the turn
    bool refusing_ = false;     // functions are only asked whether they are still wanted
    bool visited_ = false;      // what is delivered came by a visitor's thread
    bool stop_came_ = false;    // ... and the request to stop with it
    int turns_waited_ = 0;      // of a shutdown that goes on turn by turn
    std::uint64_t waits_ = 0;
    destructor_wait* innermost_wait_ = nullptr;
    std::uint64_t removed_while_served_ = 0; // roots, by serve_wait()

    simulation* around_ = nullptr;
    bool asleep_ = false; // between two turns, until a message comes
    round_member round_;
    io_context& context_;
    const io_context_options& options_;

    alignas(64) ready_queue ready_;
    ready_probe probe_;
    turn_meter meter_;
    parker parker_;

    // Written by every thread that posts. Nothing else is on this line.
    alignas(128) inbox inbox_;
    std::atomic<std::uint64_t> sent_roots_{0}; // ever

    // Written by other threads now and then, read by the loop in every turn.
    alignas(128) stop_request stop_;
    queue_node stop_node_;
    loop_hold hold_;
    std::atomic<bool> left_over_{false}; // a visitor has delivered what the next run() is for
};

} // namespace coil::detail
