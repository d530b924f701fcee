#pragma once

#include <coil/exec/blocking_pool_metrics.hpp>
#include <coil/exec/blocking_pool_options.hpp>
#include <coil/exec/detail/pool_queue.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

namespace coil {

/// A pool of threads for functions that block: calls that have no asynchronous form, or long
/// computations.
///
///     auto size = co_await blocking([&] { return std::filesystem::file_size(path); });
///
/// The pool starts without threads. A call that finds no idle thread creates one, up to a limit;
/// threads that have been idle for a while exit. The thread that became idle last runs next, so
/// that the others can exit. Calls start in submission order.
///
/// Threading: all members may be called from any thread. The pool's threads block all signals,
/// which are thus delivered to the program's own threads. They run as SCHED_BATCH (sched(7))
/// instead of SCHED_OTHER: they get their share of the processors but do not preempt a context when
/// they wake up.
///
/// The destructor drops queued calls (their awaits throw std::errc::operation_canceled) and waits
/// for running calls and for the threads. It must not be called by one of the pool's own calls.
///
/// fork(2): the threads stay in the parent. A child must not use a pool of its parent, except
/// default_blocking_pool(), which starts empty there.
class blocking_pool {
public:
    blocking_pool() : blocking_pool(blocking_pool_options{}) {}
    explicit blocking_pool(blocking_pool_options options);
    /// A pool of at most `threads` threads.
    template <std::integral Number>
    explicit blocking_pool(Number threads) : blocking_pool(with_threads(threads)) {}
    blocking_pool(const blocking_pool&) = delete;
    blocking_pool& operator=(const blocking_pool&) = delete;
    ~blocking_pool();

    /// Runs `f` on one of the threads, detached. An exception that leaves it is reported like that
    /// of a detached task. While the queue is full the calling thread blocks, unless it runs a
    /// context or belongs to the pool, where that could deadlock: then the call is queued beyond
    /// the limit. If there is no thread and none can be created, `f` is destroyed and a
    /// std::system_error reported.
    template <class F>
    void execute(F&& f);

    [[nodiscard]] blocking_pool_metrics metrics() const noexcept;
    [[nodiscard]] const blocking_pool_options& options() const noexcept { return options_; }

    // Used by awaiters.

    /// May be called from any thread. Queues the job or passes it to a thread, or drops it
    /// immediately; error() then says why, if known.
    void submit(detail::pool_job& job) noexcept;
    /// Returns true if the job was queued and was withdrawn.
    [[nodiscard]] bool take_back(detail::pool_job& job) noexcept;

private:
    friend blocking_pool& default_blocking_pool();
    struct worker;
    class watched; // NOLINT(*-virtual-class-destructor): final
    template <class F>
    class executed;

    template <std::integral Number>
    static blocking_pool_options with_threads(Number threads) {
        blocking_pool_options options;
        options.threads = std::cmp_less(threads, 0)          ? 0
                          : std::in_range<unsigned>(threads) ? static_cast<unsigned>(threads)
                                                             : ~0U;
        return options;
    }

    void wait_and_submit(detail::pool_job& job);
    void submit(detail::pool_job& job, std::unique_lock<std::mutex> lock) noexcept;
    [[nodiscard]] bool may_grow() noexcept;
    void begin_watching() noexcept;
    void make_thread() noexcept;
    void run_thread() noexcept;
    [[nodiscard]] detail::pool_job* next_job(worker& self,
                                             std::unique_lock<std::mutex>& lock) noexcept;
    void left_queue() noexcept;
    [[nodiscard]] blocking_pool_metrics metrics_locked() const noexcept;
    void reset_in_child() noexcept;

    const blocking_pool_options options_;
    mutable std::mutex mutex_;
    detail::pool_queue queue_;
    worker* idle_ = nullptr; // last idle first; while there is an idle thread, nothing is queued
    unsigned threads_ = 0;
    unsigned idle_threads_ = 0;
    std::size_t threads_made_ = 0;
    std::uint64_t delayed_ = 0;
    detail::watched_pool* watched_ = nullptr; // set with the first thread
    bool starting_ = false; // a thread is being created; it creates the next one if necessary
    bool ending_ = false;
    bool has_ended_ = false;       // during destruction: last_ended_ must be joined
    unsigned long last_ended_ = 0; // a pthread_t
    std::size_t waiting_for_room_ = 0;
    std::condition_variable room_;
    std::condition_variable ended_;
    std::uint64_t submitted_ = 0;
};

/// The pool of blocking(f): one per process, with default options. It is never destroyed. A call
/// that runs when the process exits is abandoned; its function must not use objects that are
/// destroyed at exit. (A context waits for its calls before it is destroyed.) After fork(2) the
/// pool is empty in the child.
[[nodiscard]] blocking_pool& default_blocking_pool();

template <class F>
class blocking_pool::executed final : public detail::pool_job,
                                      public detail::frame_allocated_if_aligned<F> {
public:
    template <class G>
        requires(!std::same_as<std::remove_cvref_t<G>, executed>)
    explicit executed(G&& f) : pool_job(&finish), function_(std::forward<G>(f)) {}

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<executed*>(&w);
        if (what == fate::run) {
            try {
                self->function_();
            } catch (...) {
                detail::report_unhandled(std::current_exception());
            }
        } else if (self->error() != 0) {
            detail::report_no_thread(self->error());
        }
        delete self;
    }

    F function_;
};

template <class F>
void blocking_pool::execute(F&& f) {
    wait_and_submit(*new executed<std::decay_t<F>>(std::forward<F>(f)));
}

} // namespace coil
