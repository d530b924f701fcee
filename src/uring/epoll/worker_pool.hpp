#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <pthread.h>

namespace coil::uring::detail {

/// A call that may wait. `run` is called on a thread of the pool; then the job is the pool's
/// owner's again, by worker_pool::take_finished().
struct worker_job {
    int (*run)(worker_job&) noexcept = nullptr;
    int result = 0;
    bool endless = false;        // may wait for something that never comes
    bool stands_in_line = false; // behind as many as there can be threads
    worker_job* next = nullptr;
    worker_job* previous = nullptr;
    enum class step : std::uint8_t { idle, queued, running };
    std::atomic<step> at{step::idle};
    std::atomic<bool> cancelled{false};
    /// The thread that is about to make the system call that it sleeps in: set by `run`, for
    /// worker_pool::wait_until_asleep().
    std::atomic<int> sleeper{0};
    pthread_t thread{};
};

/// Threads for calls that block, made as they are needed and up to a limit, gone again when there
/// is nothing to do for a while. Calls that may take for ever have a limit of their own and never
/// stand in the way of those that end.
class worker_pool {
public:
    /// `wake_fd`: an eventfd that is written to when something is finished and nothing was before.
    explicit worker_pool(int wake_fd) noexcept : wake_fd_(wake_fd) {}
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    ~worker_pool() { stop(); }

    /// Waits for all that runs; what is endless is interrupted. What is queued is forgotten.
    /// Nothing is submitted afterwards.
    void stop() noexcept;

    /// 0, or -EAGAIN: no thread could be started, and there is none.
    int submit(worker_job& job) noexcept;
    /// True: it did not begin and will not.
    bool withdraw(worker_job& job) noexcept;
    /// Makes the system call that it is in return with EINTR, if it is in one just now; to be
    /// called again until the job is finished.
    void interrupt(worker_job& job) noexcept;
    /// Returns when the job's thread sleeps in its system call, or is done with it, or shows
    /// neither for a while; at once when there is no thread for it.
    static void wait_until_asleep(const worker_job& job) noexcept;
    /// All that is finished, in a list by `next`, or null.
    worker_job* take_finished() noexcept;
    bool has_finished() const noexcept {
        return finished_.load(std::memory_order_relaxed) != nullptr;
    }

private:
    struct lane {
        worker_job* first = nullptr;
        worker_job* last = nullptr;
        unsigned threads = 0;
        unsigned idle = 0;
        unsigned queued = 0;
        unsigned limit = 0;
        bool waking = false; // a thread was woken, and has not come yet
        std::condition_variable work;
    };

    lane& lane_of(const worker_job& job) noexcept { return job.endless ? endless_ : short_; }
    static void wake_one(lane& l) noexcept;
    bool start_thread(lane& l) noexcept;
    void serve(lane& l) noexcept;
    worker_job* take(lane& l) noexcept;
    static bool wait_for_work(lane& l, std::unique_lock<std::mutex>& lock) noexcept;
    void finish(worker_job& job) noexcept;
    static void unlink(lane& l, worker_job& job) noexcept;
    void add_running(worker_job& job) noexcept;
    void remove_running(worker_job& job) noexcept;

    int wake_fd_;
    std::mutex guard_;
    std::condition_variable gone_;
    lane short_;
    lane endless_;
    bool ending_ = false;
    worker_job* running_ = nullptr;
    std::atomic<worker_job*> finished_{nullptr};
};

} // namespace coil::uring::detail
