#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace coil::uring::detail {

/// A call that may block. `run` is called on a thread of the pool; afterwards worker_pool::
/// take_finished() returns the job to the pool's owner.
struct worker_job {
    int (*run)(worker_job&) noexcept = nullptr;
    int result = 0;
    bool unbounded = false; // may wait for an event that never occurs
    bool queued = false;    // queued because the maximum number of threads is busy
    worker_job* next = nullptr;
    worker_job* previous = nullptr;
    enum class step : std::uint8_t { idle, queued, running };
    std::atomic<step> at{step::idle};
    std::atomic<bool> cancelled{false};
    /// The thread that is about to make the system call in which it will sleep: set by `run`, for
    /// worker_pool::wait_until_asleep().
    std::atomic<int> sleeper{0};
    pthread_t thread{};
};

/// Threads for blocking calls, created on demand up to a limit; a thread ends after being idle for
/// a while. Calls without a bound on their duration have a limit of their own, so that they never
/// delay calls that end by themselves.
class worker_pool {
public:
    /// `wake_fd`: an eventfd that is written when the first finished job becomes available.
    explicit worker_pool(int wake_fd) noexcept : wake_fd_(wake_fd) {}
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    ~worker_pool() { stop(); }

    /// Discards the queued jobs, and interrupts the running ones until all of them have ended. No
    /// job may be submitted afterwards.
    void stop() noexcept;

    /// 0, or -EAGAIN if the pool has no thread and none could be started.
    int submit(worker_job& job) noexcept;
    /// Removes a job that is still queued, so that it never runs. Returns false if it has begun.
    bool withdraw(worker_job& job) noexcept;
    /// Interrupts the job's current system call with EINTR, if it is in one. Call it repeatedly
    /// until the job is finished.
    void interrupt(worker_job& job) noexcept;
    /// Interrupts the job until it has ended and `result` is known; false if it takes too long.
    bool interrupt_now(worker_job& job) noexcept;
    /// Waits until the job's thread sleeps in its system call or has returned from it, for a
    /// limited time. Returns immediately if the job has no thread.
    static void wait_until_asleep(const worker_job& job) noexcept;
    /// Returns all finished jobs as a list linked by `next`, or null.
    worker_job* take_finished() noexcept;
    bool has_finished() const noexcept {
        return finished_.load(std::memory_order_relaxed) != nullptr;
    }

private:
    struct worker_class {
        worker_job* first = nullptr;
        worker_job* last = nullptr;
        unsigned threads = 0;
        unsigned idle = 0;
        unsigned queued = 0;
        unsigned limit = 0;
        bool waking = false; // a thread was woken and has not taken the lock yet
        std::condition_variable work;
    };

    worker_class& class_of(const worker_job& job) noexcept {
        return job.unbounded ? unbounded_ : bounded_;
    }
    static void wake_one(worker_class& l) noexcept;
    bool start_thread(worker_class& l) noexcept;
    void serve(worker_class& l) noexcept;
    worker_job* take(worker_class& l) noexcept;
    static bool wait_for_work(worker_class& l, std::unique_lock<std::mutex>& lock) noexcept;
    void finish(worker_job& job) noexcept;
    static void unlink(worker_class& l, worker_job& job) noexcept;
    void add_running(worker_job& job) noexcept;
    void remove_running(worker_job& job) noexcept;

    int wake_fd_;
    std::mutex guard_;
    std::condition_variable gone_;
    worker_class bounded_;
    worker_class unbounded_;
    bool ending_ = false;
    worker_job* running_ = nullptr;
    std::atomic<worker_job*> finished_{nullptr};
};

} // namespace coil::uring::detail
