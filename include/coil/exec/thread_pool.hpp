#pragma once

#include <coil/base/owned.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/context/detail/checked_number.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/exec/detail/function_slab.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace coil {

struct thread_pool_options {
    /// 0: usable_processors(), the number that the affinity mask and the cgroup's quota allow.
    unsigned threads = 0;
    /// The threads are named NAME-0, NAME-1, ... (Linux shows 15 characters).
    std::string name = "coil-pool";
    /// How long an idle thread spins in search of work before it sleeps. A thread that has found
    /// none by spinning does not spin again until one of its sleeps is shorter than this, so an
    /// idle pool uses no CPU.
    std::chrono::nanoseconds spin = std::chrono::microseconds(50);
};

/// A work-stealing thread pool, for computations.
///
///     thread_pool pool;                    // one thread per processor
///     pool.execute([] { compress(); });
///     co_await resume_on(pool);            // the coroutine continues on one of the threads
///     pool.drain();                        // waits until all of that is done
///
/// Every thread has a queue. Work that is submitted on a thread of the pool goes to the queue of
/// that thread, which runs the newest first: recursive algorithms then keep few pieces queued, and
/// caches stay warm. Idle threads steal the oldest. Work from other threads waits in one queue for
/// the whole pool, from which it is taken in submission order.
///
/// Fairness (guarantee G7): of every 64 pieces of work that a thread takes, at least one is the
/// oldest of its own queue, and at least one comes from the pool's queue, unless these are empty.
/// Work that does not return occupies only its thread: the others steal what that thread has
/// queued.
///
/// Threading: all members except the destructor may be called from any thread at any time, before
/// and after stop(). Submitting neither blocks nor fails for lack of memory (except that execute()
/// allocates space for its function and may throw std::bad_alloc). A submission happens before its
/// work, which happens before drain() returns. Once the work can run, the submitting call no longer
/// accesses the pool, so the work may lead to the destruction of the pool.
///
/// Exceptions that leave a function of execute() are printed to stderr.
class thread_pool {
public:
    /// Starts the threads. If one cannot be started, ends the others and throws std::system_error
    /// with std::errc::resource_unavailable_try_again. Throws std::invalid_argument for more than
    /// 32 767 threads.
    thread_pool(thread_pool_options options = {}); // NOLINT(*-explicit-*): thread_pool p = {}
    /// 0 threads: one per processor, see thread_pool_options.
    template <std::integral N>
    explicit thread_pool(N threads)
        : thread_pool(with_threads(detail::checked_number<unsigned>(threads))) {}
    /// Produces a readable compiler error.
    explicit thread_pool(const char*)
        COIL_DELETE("pass the number of threads: thread_pool pool(4)");
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    /// Calls drain(), stop() and join(): submitted work is run. Work that submits itself forever is
    /// waited for, so call stop() first to drop what has not started. On one of the pool's own
    /// threads it terminates the program with a message.
    ~thread_pool();

    /// Calls `f()` on one of the threads. After stop(), destroys it immediately without calling it.
    template <class F>
    void execute(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (detail::fits_a_slab<function>) {
            submit(detail::slab_work<function>::make(std::forward<F>(f)));
        } else {
            detail::execute_as_work(*this, std::forward<F>(f));
        }
    }

    /// Produce readable compiler errors.
    template <detail::derived_from_task Task>
    void execute(Task&&) COIL_DELETE("a task is awaited on an executor: co_await on(pool, f())");
    template <class Task>
    void spawn(Task&&) COIL_DELETE("a task is awaited on an executor: co_await on(pool, f())");

    /// Like execute(), for a work object of the caller. Allocates nothing and does not throw.
    void submit(detail::work& w) noexcept;

    /// Blocks until nothing is queued or running, including work that was submitted meanwhile, by
    /// the pool's own work or by other threads. The pool can be used afterwards. After stop(),
    /// blocks until the running work has returned. On one of the pool's threads it throws
    /// std::system_error with std::errc::resource_deadlock_would_occur. (It also blocks a context
    /// that runs on the calling thread.)
    void drain();

    /// Makes the threads end after their current work. Queued work is dropped before stop()
    /// returns, and later submissions are dropped by the submitting call: functions are destroyed
    /// uncalled, and a coroutine that was to move to the pool stays where it was: its await throws
    /// std::system_error with std::errc::operation_canceled. Does not wait for the threads, so they
    /// may call it. It cannot be undone.
    void stop() noexcept;

    /// Blocks until the threads have ended, which requires stop(). Throws like drain().
    void join();

    /// The number of threads.
    [[nodiscard]] unsigned size() const noexcept;
    /// Whether the caller is one of the threads.
    [[nodiscard]] bool runs_here() const noexcept;

private:
    class worker;
    struct state; // NOLINT(*-virtual-class-destructor): final

    static thread_pool_options with_threads(unsigned threads) {
        thread_pool_options options;
        options.threads = threads;
        return options;
    }

    detail::owned<state> state_;
};

} // namespace coil
