#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/context/prometheus.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil {

class blocking_pool;

struct blocking_pool_options {
    /// The maximum number of threads. They mostly sleep in the kernel, so there may be many more
    /// than processors; each takes the memory that its stack has touched. 0 counts as 1.
    unsigned threads = 512;
    /// The maximum number of queued calls. Further calls wait for space: coroutines are suspended
    /// and served in order, callers of execute() block. 0 counts as 1.
    std::size_t queue = 65'536;
    /// A thread that has been idle for this long exits.
    std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
    /// The name of the threads in `top -H` and debuggers; at most 15 characters.
    std::string name = "coil-blocking";
};

/// A snapshot of a pool's state.
struct blocking_pool_metrics {
    unsigned threads = 0;      ///< existing threads, including those being created
    unsigned idle_threads = 0; ///< threads that have nothing to do
    std::size_t queued = 0;    ///< calls that no thread has started
    std::size_t waiting = 0;   ///< calls that wait for space in the queue
    /// The number of threads created so far. If it keeps growing, idle_time is too short.
    std::size_t threads_made = 0;
    /// The number of calls so far that found every thread busy and the number of threads at its
    /// maximum. If it keeps growing, use more threads.
    std::uint64_t delayed = 0;
    /// How often calls have waited for watchdog_options::pool_delay, as seen by the watchdog; 0
    /// while no context is watched.
    std::uint64_t full_reports = 0;
};

/// Appends the metrics in the Prometheus text format, like write_prometheus() of a context. Every
/// name begins with `coil_pool_`. Throws std::invalid_argument for an invalid label name. The page
/// of an admin socket contains them for each pool, labelled `pool="NAME"`.
void write_prometheus(std::string& out, const blocking_pool_metrics& metrics,
                      const std::vector<metric_label>& labels = {});

namespace detail {

class watched_pool;

/// A submitted call; part of its awaiter.
class pool_job : public work {
public:
    /// The error if no thread could be created for the job, or 0.
    [[nodiscard]] int error() const noexcept { return error_; }

protected:
    explicit pool_job(function f) noexcept : work(f) {}
    ~pool_job() = default;

private:
    friend class pool_queue;
    friend class coil::blocking_pool;

    pool_job* before_ = nullptr;
    pool_job* behind_ = nullptr;
    bool queued_ = false;
    int error_ = 0;
};

/// Reports the error like the exception of a detached task.
void report_no_thread(int error) noexcept;

/// A FIFO queue from which any job can be removed.
class pool_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(pool_job& job) noexcept;
    pool_job& pop() noexcept;
    /// Returns false if the job is not in the queue.
    bool remove(pool_job& job) noexcept;

private:
    pool_job* first_ = nullptr;
    pool_job* last_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace detail

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
    class watched;
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
