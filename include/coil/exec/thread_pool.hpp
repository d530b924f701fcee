#pragma once

#include <coil/context/options.hpp>
#include <coil/exec/detail/function_slab.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace coil {

struct thread_pool_options {
    /// 0: usable_processors(), as many as the affinity mask and the cgroup's quota allow.
    unsigned threads = 0;
    /// The threads are called NAME-0, NAME-1, ... (Linux shows 15 characters).
    std::string name = "coil-pool";
    /// How long a thread that has nothing to do looks for work before it sleeps. One that has
    /// looked in vain sleeps at once, until a sleep turns out to have been shorter than this, so an
    /// idle pool uses no CPU.
    std::chrono::nanoseconds spin = std::chrono::microseconds(50);
};

/// An executor of some threads that share their work by stealing: for computations.
///
///     thread_pool pool;                    // a thread per processor
///     pool.execute([] { compress(); });
///     co_await resume_on(pool);            // the coroutine goes on on one of the threads
///     pool.drain();                        // until all of that is done
///
/// Every thread has a queue of its own. What is submitted by work that runs on the pool goes there,
/// and its thread runs the youngest first, so that what recursive algorithms submit stays small in
/// number and warm in cache; threads without work of their own take the oldest. What comes from
/// elsewhere is run in the order in which it came, as far as several threads can keep one.
/// Nothing starves (guarantee G7): of 64 pieces of work that a thread takes, one at least is the
/// oldest of its own queue, if there are several, and one at least comes from elsewhere. A piece of
/// work that does not return keeps its thread, and nothing else: others take what that thread has
/// queued.
///
/// Threading: any thread may call anything at any time, before and after stop(), except the
/// destructor. Submitting neither blocks nor fails for want of memory (execute() allocates its
/// function a place; it may throw std::bad_alloc). It happens before what was submitted runs, and
/// that before drain() returns. It is the last access to the pool: work may end it.
///
/// Exceptions: what leaves a function of execute() goes to stderr, as nobody can receive it.
class thread_pool {
public:
    /// Starts the threads. Throws std::system_error when one cannot be started
    /// (std::errc::resource_unavailable_try_again; those that were have ended then),
    /// std::invalid_argument for more than 32 767 of them.
    thread_pool() : thread_pool(thread_pool_options{}) {}
    explicit thread_pool(thread_pool_options options);
    /// 0 threads: as many as there are processors, see thread_pool_options.
    template <std::integral N>
    explicit thread_pool(N threads)
        : thread_pool(with_threads(detail::checked_number<unsigned>(threads))) {}
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    /// drain(), stop(), join(): what was submitted is run. Work that submits itself for ever is
    /// waited for, so call stop() first to give up what has not begun. One of the pool's own
    /// threads cannot wait for itself: there, it ends the program with a message.
    ~thread_pool();

    /// Calls `f()` on one of the threads. After stop(), destroys it uncalled, at once.
    template <class F>
    void execute(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (detail::fits_a_slab<function>) {
            submit(detail::slab_work<function>::make(std::forward<F>(f)));
        } else {
            detail::execute_as_work(*this, std::forward<F>(f));
        }
    }

    /// The same for work that has its place: neither allocates nor throws.
    void submit(detail::work& w) noexcept;

    /// Blocks until nothing is queued or running: all that was submitted has run, and all that it
    /// has submitted, and so on, and whatever other threads have submitted meanwhile. The pool goes
    /// on. After a stop(), until what ran then has returned.
    /// Throws std::system_error with std::errc::resource_deadlock_would_occur on one of the pool's
    /// threads. (One that runs a context it blocks with all that runs there.)
    void drain();

    /// The threads end when they have done what each is at, and begin nothing more. What is queued
    /// is dropped by whoever calls, before stop() returns, and what is submitted after that by
    /// whoever submits it: functions are destroyed uncalled, a coroutine's await throws
    /// std::system_error with std::errc::operation_canceled where the coroutine came from. Does not
    /// wait for the threads, so one of them may call it. For good.
    void stop() noexcept;

    /// Blocks until the threads have ended, which they do after a stop(). Throws as drain() does.
    void join();

    /// How many threads.
    [[nodiscard]] unsigned size() const noexcept;
    /// Whether the caller is one of the threads.
    [[nodiscard]] bool runs_here() const noexcept;

private:
    class worker;
    struct state;

    static thread_pool_options with_threads(unsigned threads) {
        thread_pool_options options;
        options.threads = threads;
        return options;
    }

    std::unique_ptr<state> state_;
};

} // namespace coil
