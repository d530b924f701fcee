#pragma once

#include <coil/core/promise.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/home_executor.hpp>
#include <coil/exec/detail/work.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace coil {

namespace detail {

class run_loop_yield;

} // namespace detail

/// The smallest scheduler: coroutines that take turns on one thread, without a kernel behind them.
///
///     run_loop loop;
///     loop.push(counter("a", 3));      // a std::coroutine_handle<>: each suspension ends a turn
///     loop.spawn(talks(loop));         // a task: co_await loop.yield() ends a turn
///     loop.run();                      // until all have ended
///
/// What is ready stands in one queue. A *round* gives everything that is in it a turn, in the order
/// in which it came; what gets ready meanwhile has its turn in the next round.
///
/// The loop owns the frames that it was given, and destroys each as soon as it has ended, or with
/// itself. It is an executor, too: loop.execute(f), asyncify(f, loop).
///
/// Two kinds of coroutines:
/// - push(handle): of any type. It is resumed in each round until it is done, whatever it has
///   suspended for; so it may co_await what only suspends (std::suspend_always, loop.yield()) or
///   is ready, and nothing that resumes it by itself (blocking() and asyncify() end the program
///   with a message), nor another coroutine.
/// - spawn(task): a task. It is resumed when what it awaits is over, and by nobody else meanwhile;
///   then it goes on on this loop. Of coil's awaits those work that need no context: other tasks,
///   blocking(), asyncify(), loop.yield(), on(), async_tasks. A task of a loop does not move
///   elsewhere: resume_on() and schedule() throw std::logic_error.
///
/// Threading: run() and run_once() by one thread at a time; everything else from any thread, also
/// while they run. Who resumes a coroutine sees all that its last turn has done.
///
/// When run() returns:
/// - drain: when nothing is left, that is, every coroutine has ended and every function was called,
///   and finish() has said that no more will come. A loop that was given something (push(),
///   spawn(), execute()), and only by the thread that runs it, needs no finish(): there is nobody
///   else. One that another thread has given something, or that nobody has given anything yet,
///   waits for more.
/// - stop: after the turn that stop() was called in. Everything else stays where it is, and the
///   next run() goes on with it.
/// Until then, with nothing ready, it sleeps. What comes after that waits for another run(). The
/// destructor is the end for all: it destroys what has not ended; functions are destroyed uncalled.
/// A task of on() that a destroyed one waits for is asked to stop, destroyed where it is when that
/// is a context, and waited for.
///
/// An exception that leaves a task, a function or resume() is reported as that of a detached task.
class run_loop {
public:
    run_loop();
    run_loop(const run_loop&) = delete;
    run_loop& operator=(const run_loop&) = delete;
    /// Not while it runs, nor while other threads still give it something.
    ~run_loop();

    /// Takes over a suspended coroutine. Its final suspension must suspend. One that is done is
    /// destroyed in its turn. False, and nothing happens, for a null handle and for one that the
    /// loop has already: a coroutine may push itself as it suspends. When it throws
    /// (std::bad_alloc), the coroutine is still the caller's.
    bool push(std::coroutine_handle<> coroutine);

    /// Starts a task, detached. Its first turn is in the next round.
    void spawn(task<> work);

    /// Calls `f` in its turn.
    template <class F>
    void execute(F&& f) {
        entrance from_outside{*this};
        detail::execute_as_work(from_outside, std::forward<F>(f));
    }

    /// For a coroutine of this loop: everybody else who is ready has a turn first.
    detail::run_loop_yield yield() noexcept;

    /// Gives turns until nothing is left and nothing will come, or stop(): see above. Throws
    /// std::logic_error when it runs already.
    void run();
    /// One round; how many turns there were. Does not wait: 0 when nothing is ready.
    std::size_t run_once();

    /// Nobody will be waited for any more: from now on run() returns as soon as nothing is left.
    /// (It still takes what comes.)
    void finish() noexcept;
    /// Makes run() or run_once() return after the turn that is under way; without one, the next
    /// run() returns at once.
    void stop() noexcept;

    // For awaiters.

    /// Of a coroutine that comes to the loop or back to it by itself.
    void submit(detail::work& w) noexcept { enter(w, false); }
    /// It has been submitted, or is about to be: takes it out before its turn.
    void take_out(detail::work& w) noexcept;
    /// For a destructor: false when it has not come. What is waited for may be another's coroutine
    /// that lies in the queue, which nobody runs any more: one of those is dropped.
    [[nodiscard]] bool take_out_now(detail::work& w) noexcept;
    [[nodiscard]] detail::home_executor home() noexcept;

private:
    class pushed;
    class spawned; // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
    class running;
    /// What is submitted here was given to the loop by whoever calls.
    struct entrance {
        run_loop& loop;
        void submit(detail::work& w) const noexcept { loop.enter(w, true); }
    };

    void enter(detail::work& w, bool given) noexcept;
    void note_giver() noexcept;
    [[nodiscard]] std::size_t run_round(std::unique_lock<std::mutex>& lock) noexcept;
    [[nodiscard]] bool nothing_left() const noexcept;
    void destroy(pushed& frame) noexcept;
    void begin(spawned& root) noexcept;
    void end(spawned& root) noexcept;

    std::mutex mutex_;
    std::condition_variable changed_;
    detail::fifo ready_;
    detail::fifo round_; // what has not had its turn in this round
    std::unordered_map<void*, std::unique_ptr<pushed>> frames_; // by their addresses
    spawned* oldest_ = nullptr;                                 // of the tasks that have begun
    spawned* newest_ = nullptr;
    std::thread::id runner_; // while it runs
    std::thread::id giver_;  // who was the first to give it something
    bool given_by_others_ = false;
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
            loop_.take_out(*this); // destroyed in the queue
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        if (waiter != resumed_each_round) {
            waiter_ = waiter;
            root_ = root_of(waiter);
            set_owned(root_ == nullptr);
            loop_.submit(*this);
        }
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
    event_loop* settled_in_ = nullptr; // of a context, when the run_loop has ended
};

} // namespace detail

inline detail::run_loop_yield run_loop::yield() noexcept { return detail::run_loop_yield(*this); }

} // namespace coil
