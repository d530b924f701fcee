#pragma once

#include <coil/exec/detail/work.hpp>

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace coil {

class blocking_pool;

struct blocking_pool_options {
    /// Threads at most. Those of a pool mostly sleep in the kernel, so there may be many more than
    /// processors; each takes the memory that its stack has touched. 0 counts as 1.
    unsigned threads = 512;
    /// Calls at most that the pool has queued. Further ones wait for room: those of coroutines
    /// suspended, in their order, those of execute() with their thread. 0 counts as 1.
    std::size_t queue = 65'536;
    /// A thread that has had nothing to do for so long ends.
    std::chrono::nanoseconds idle_time = std::chrono::seconds(10);
    /// Of the threads, as `top -H` and debuggers show it; 15 characters at most.
    std::string name = "coil-blocking";
};

/// How a pool stood a moment ago.
struct blocking_pool_metrics {
    unsigned threads = 0;      ///< that there are, those just being made included
    unsigned idle_threads = 0; ///< of these: have nothing to do
    std::size_t queued = 0;    ///< calls that no thread has begun with
    std::size_t waiting = 0;   ///< calls that wait for room in the queue
    /// Ever made: where this grows all the time, idle_time is too short.
    std::size_t threads_made = 0;
};

namespace detail {

/// A call that a pool has or had: a part of whoever waits for it.
class pool_job : public work {
public:
    /// Why it was dropped, when no thread could be made for it; or 0.
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

/// As the exception of a detached task.
void report_no_thread(int error) noexcept;

/// First in, first out; any can be taken out.
class pool_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    void push(pool_job& job) noexcept;
    pool_job& pop() noexcept;
    /// False when it is not in it.
    bool remove(pool_job& job) noexcept;

private:
    pool_job* first_ = nullptr;
    pool_job* last_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace detail

/// Threads for functions that block: what has no asynchronous form, or computes for long.
///
///     auto entries = co_await blocking([&] { return std::filesystem::file_size(path); });
///
/// It begins without a thread, makes one whenever a call finds none idle, up to a limit, and lets
/// those end that have had nothing to do for a while. What was idle last works first, so the others
/// may end. Calls begin in their order.
///
/// Threading: all member functions from any thread. The threads block all signals: these are for
/// the program's own. They run as SCHED_BATCH (sched(7)) where they would run as SCHED_OTHER: they
/// get their share of the processors, but do not interrupt a context when they wake up.
///
/// The destructor drops what is queued (an await then throws std::errc::operation_canceled) and
/// waits for the calls that have begun and for the threads. Not from inside of one of its calls.
///
/// fork(2): the threads stay in the parent. A child must not use a pool of its parent, except
/// default_blocking_pool(), which begins anew there.
class blocking_pool {
public:
    blocking_pool() : blocking_pool(blocking_pool_options{}) {}
    explicit blocking_pool(blocking_pool_options options);
    /// So many threads at most.
    template <std::integral Number>
    explicit blocking_pool(Number threads) : blocking_pool(with_threads(threads)) {}
    blocking_pool(const blocking_pool&) = delete;
    blocking_pool& operator=(const blocking_pool&) = delete;
    ~blocking_pool();

    /// Runs `f` on one of the threads, detached. An exception that leaves it is reported as that of
    /// a detached task is. While the queue is full the calling thread waits, unless it runs a
    /// context or belongs to the pool: those would wait for themselves, and are let in. When there
    /// is no thread and none can be made, `f` is destroyed and a std::system_error reported.
    template <class F>
    void execute(F&& f);

    [[nodiscard]] blocking_pool_metrics metrics() const noexcept;
    [[nodiscard]] const blocking_pool_options& options() const noexcept { return options_; }

    // For awaiters.

    /// Any thread. The job is queued, or given to a thread; or dropped at once, which error() may
    /// explain.
    void submit(detail::pool_job& job) noexcept;
    /// True: it was queued, and is no more.
    [[nodiscard]] bool take_back(detail::pool_job& job) noexcept;

private:
    friend blocking_pool& default_blocking_pool();
    struct worker;
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
    void make_thread() noexcept;
    void run_thread() noexcept;
    [[nodiscard]] detail::pool_job* next_job(worker& self,
                                             std::unique_lock<std::mutex>& lock) noexcept;
    void left_queue() noexcept;
    void reset_in_child() noexcept;

    const blocking_pool_options options_;
    mutable std::mutex mutex_;
    detail::pool_queue queue_;
    worker* idle_ = nullptr; // who was idle last comes first; while there is one, nothing is queued
    unsigned threads_ = 0;
    unsigned idle_threads_ = 0;
    std::size_t threads_made_ = 0;
    bool starting_ = false; // a thread is being made; when it runs, it makes the next if need be
    bool ending_ = false;
    bool has_ended_ = false;       // while ending: last_ended_ is to be joined
    unsigned long last_ended_ = 0; // a pthread_t
    std::size_t waiting_for_room_ = 0;
    std::condition_variable room_;
    std::condition_variable ended_;
};

/// The pool of blocking(f): one for the process, with the default options. It is never destroyed;
/// a call that has begun when the process exits is left behind, and its function must then not use
/// what the exit destroys. (A context waits for its calls before it is gone.) After fork(2) it is
/// as new in the child.
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
