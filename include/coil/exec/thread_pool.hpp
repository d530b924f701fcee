#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/detail/checked_number.hpp>
#include <coil/exec/detail/function_slab.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/executor.hpp>

#include <chrono>
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
    /// How long an idle thread spins in search of work before it sleeps. After spinning without
    /// success a thread sleeps at once, until a sleep turns out to have been shorter than this, so
    /// that an idle pool uses no CPU.
    std::chrono::nanoseconds spin = std::chrono::microseconds(50);
};

/// A work-stealing thread pool, for computations.
///
///     thread_pool pool;                    // one thread per processor
///     pool.execute([] { compress(); });
///     co_await resume_on(pool);            // the coroutine continues on one of the threads
///     pool.drain();                        // waits until all of that is done
///
/// Every thread has a queue. Work submitted by work that runs on the pool goes to the queue of its
/// thread, which runs the youngest first, so that recursive algorithms keep few pieces queued and
/// caches warm; idle threads steal the oldest. Work from other threads runs in submission order, as
/// far as several threads can preserve one.
///
/// Fairness (guarantee G7): of 64 pieces of work that a thread takes, at least one is the oldest of
/// its own queue, if there are several, and at least one comes from elsewhere. Work that does not
/// return occupies only its thread: others steal what that thread has queued.
///
/// Threading: all members except the destructor may be called from any thread at any time, before
/// and after stop(). Submitting neither blocks nor fails for lack of memory (except that execute()
/// allocates space for its function and may throw std::bad_alloc). A submission happens before its
/// work, which happens before drain() returns. Submitting is the last access to the pool, so the
/// work may cause its destruction.
///
/// Exceptions that leave a function of execute() are printed to stderr.
class thread_pool {
public:
    /// Starts the threads. Throws std::system_error with std::errc::resource_unavailable_try_again
    /// if one cannot be started, after the others have ended; std::invalid_argument for more than
    /// 32 767.
    thread_pool() : thread_pool(thread_pool_options{}) {}
    explicit thread_pool(thread_pool_options options);
    /// 0 threads: one per processor, see thread_pool_options.
    template <std::integral N>
    explicit thread_pool(N threads)
        : thread_pool(with_threads(detail::checked_number<unsigned>(threads))) {}
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    /// Calls drain(), stop() and join(): submitted work is run. Work that submits itself forever is
    /// waited for, so call stop() first to drop what has not started. On one of the pool's own
    /// threads it terminates the program with a message.
    ~thread_pool();

    /// Calls `f()` on one of the threads. After stop(), destroys it uncalled at once.
    template <class F>
    void execute(F&& f) {
        using function = std::decay_t<F>;
        if constexpr (detail::fits_a_slab<function>) {
            submit(detail::slab_work<function>::make(std::forward<F>(f)));
        } else {
            detail::execute_as_work(*this, std::forward<F>(f));
        }
    }

    /// The same for work, which needs no allocation: does not throw.
    void submit(detail::work& w) noexcept;

    /// Blocks until nothing is queued or running, including work that was submitted meanwhile, by
    /// the pool's own work or by other threads. The pool can be used afterwards. After stop(),
    /// blocks until the running work has returned. On one of the pool's threads it throws
    /// std::system_error with std::errc::resource_deadlock_would_occur. (It also blocks a context
    /// that runs on the calling thread.)
    void drain();

    /// Makes the threads end after their current work. Queued work is dropped before stop()
    /// returns, and later submissions are dropped by the submitting call: functions are destroyed
    /// uncalled, and a coroutine's await throws std::system_error with
    /// std::errc::operation_canceled where the coroutine came from. Does not wait for the threads,
    /// so they may call it. It cannot be undone.
    void stop() noexcept;

    /// Blocks until the threads have ended, which requires stop(). Throws as drain() does.
    void join();

    /// The number of threads.
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

    detail::owned<state> state_;
};

} // namespace coil
