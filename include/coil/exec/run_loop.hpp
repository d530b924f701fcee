#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/detail/work.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>

namespace coil {

namespace detail {

class run_loop_yield;

} // namespace detail

/// A minimal scheduler: coroutines that take turns on one thread, without io_uring.
///
///     run_loop loop;
///     loop.push(counter("a", 3));      // a std::coroutine_handle<>: each suspension ends a turn
///     loop.spawn(talks(loop));         // a task: co_await loop.yield(), or yield(), ends a turn
///     loop.run();                      // until all have ended
///
/// Ready coroutines are in one FIFO queue. A *round* gives each of them one turn; coroutines that
/// become ready meanwhile run in the next round. The loop owns the frames that it was given and
/// destroys each one when it has ended, or in its destructor. It is also an executor:
/// loop.execute(f), asyncify(f, loop).
///
/// There are two kinds of coroutines:
/// - push(handle): a coroutine of any type. It is resumed in each round until it is done,
///   regardless of why it suspended. It may therefore co_await only awaitables that merely suspend
///   (std::suspend_always, yield()) or are ready, and must not await another coroutine or any
///   awaitable that resumes it; blocking() and asyncify() terminate the program with a message.
/// - spawn(task): a task. It is resumed, on this loop, only when its await has completed. It may
///   use those of coil's awaits that need no context: other tasks, blocking(), asyncify(),
///   yield(), on(), async_tasks. It cannot move to another executor: resume_on() and
///   schedule() throw std::logic_error.
///
/// Unlike std::execution::run_loop, push() takes coroutines, and run() can return without finish(),
/// see below.
///
/// Threading: run() and run_once() may be called by one thread at a time, everything else from any
/// thread, even while they run. Each turn of a coroutine happens before its next one.
///
/// run() returns:
/// - when the loop is drained: every coroutine has ended, every function was called, and finish()
///   has announced that no more work will come. finish() is not needed if only the running thread
///   has submitted work (push(), spawn(), execute()). If another thread has submitted work, or if
///   none has been submitted yet, run() waits for more.
/// - after stop(), when the current turn ends. Everything else stays queued for the next run().
///
/// While nothing is ready, run() sleeps. Work that is submitted after run() has returned waits for
/// the next run().
///
/// The destructor destroys coroutines that have not ended and functions that were not called. If
/// one of these coroutines waits in on(), the task passed to on() is asked to stop, destroyed
/// immediately if it is on a context, and waited for.
///
/// An exception that leaves a task, a function or resume() is reported like that of a detached
/// task.
class run_loop {
public:
    run_loop();
    run_loop(const run_loop&) = delete;
    run_loop& operator=(const run_loop&) = delete;
    /// Must not be called while the loop runs or other threads submit to it.
    ~run_loop();

    /// Takes ownership of a suspended coroutine, which must suspend at its final suspension point.
    /// A coroutine that is already done is destroyed in its turn. Returns false, without effect,
    /// for a null handle and for a coroutine that the loop already owns (a coroutine may push
    /// itself as it suspends). If it throws std::bad_alloc, the caller still owns the coroutine.
    bool push(std::coroutine_handle<> coroutine);

    /// Starts a detached task. Its first turn is in the next round.
    void spawn(task<> work COIL_CAPTURED(this));
    /// Produces a readable compiler error.
    template <class T>
    void push(task<T>&&) COIL_DELETE("push takes a coroutine_handle: loop.spawn(f()) takes a task");

    /// Calls `f` once, in a later round.
    template <class F>
    void execute(F&& f) {
        entrance from_outside{*this};
        detail::execute_as_work(from_outside, std::forward<F>(f));
    }

    /// Awaited by a coroutine of this loop: lets all other ready coroutines run first.
    detail::run_loop_yield yield() noexcept;

    /// Runs rounds until the loop is drained or stopped, see above. Throws std::logic_error if the
    /// loop is already running.
    void run();
    /// Runs one round without waiting. Returns the number of turns; 0 if nothing is ready.
    std::size_t run_once();

    /// Announces that no more work will come: from now on run() returns when nothing is left. (Work
    /// is still accepted.)
    void finish() noexcept;
    /// Makes run() or run_once() return after the current turn. If neither is running, the next
    /// call of either returns immediately.
    void stop() noexcept;

    // Used by awaiters.

    /// Queues a coroutine that moves to the loop, or resumes on it, rather than being submitted by
    /// push() or spawn().
    void submit(detail::work& w) noexcept { enter(w, false); }
    /// Removes `w` before its turn. If another thread is about to submit it, waits for that.
    void take_out(detail::work& w) noexcept;
    /// Called by a destructor: removes `w` from the queue. Returns false if `w` has not arrived.
    /// Its arrival may depend on other work in the queue, which this loop no longer runs;
    /// therefore one piece of that work is dropped.
    [[nodiscard]] bool take_out_now(detail::work& w) noexcept;

private:
    class pushed;
    struct frame_table;
    class spawned; // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
    class yielded; // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
    class running; // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
    /// Submits work on behalf of the calling thread (see note_submitter()).
    struct entrance {
        run_loop& loop;
        void submit(detail::work& w) const noexcept { loop.enter(w, true); }
    };

    void enter(detail::work& w, bool is_submission) noexcept;
    void note_submitter() noexcept;
    [[nodiscard]] std::size_t run_round(std::unique_lock<std::mutex>& lock) noexcept;
    [[nodiscard]] bool nothing_left() const noexcept;
    void destroy(pushed& frame) noexcept;
    void begin(spawned& root) noexcept;
    void end(spawned& root) noexcept;

    std::mutex mutex_;
    std::condition_variable changed_;
    detail::fifo ready_;
    detail::fifo round_;                // work that has not had its turn in this round
    detail::owned<frame_table> frames_; // the pushed coroutines
    spawned* oldest_ = nullptr;         // the list of tasks that have started
    spawned* newest_ = nullptr;
    std::thread::id runner_;          // set while it runs
    std::thread::id first_submitter_; // the first thread that submitted work
    bool several_submitters_ = false;
    bool finishing_ = false;
    bool stopping_ = false;
};

namespace detail {

class [[nodiscard("did you forget to co_await?")]] run_loop_yield : work {
public:
    explicit run_loop_yield(run_loop& loop) noexcept : work(&go_on), loop_(loop) {}
    run_loop_yield(const run_loop_yield&) = delete;
    run_loop_yield& operator=(const run_loop_yield&) = delete;
    ~run_loop_yield() {
        if (settled_in_ != nullptr) [[unlikely]] {
            settled_in_->withdraw(*this, waiter_);
        } else if (waiter_) [[unlikely]] {
            loop_.take_out(*this); // destroyed while queued
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        if (waiter != resumed_each_round) {
            begin(waiter, nearest_root(waiter));
        }
    }
    void begin(std::coroutine_handle<> waiter, promise_base* root) noexcept {
        waiter_ = waiter;
        root_ = movable_above(root);
        set_owned(root_ == nullptr);
        loop_.submit(*this);
    }
    void await_resume() noexcept {
        waiter_ = nullptr;
        settled_in_ = nullptr;
    }

private:
    static void go_on(work& w, fate what) noexcept;

    run_loop& loop_;
    std::coroutine_handle<> waiter_;
    promise_base* root_ = nullptr;
    event_loop* settled_in_ = nullptr; // set if the run_loop has ended and a context resumes it
};

} // namespace detail

inline detail::run_loop_yield run_loop::yield() noexcept { return detail::run_loop_yield(*this); }

} // namespace coil
