#pragma once

#include "../context/waiting_threads.hpp"

#include <coil/exec/detail/idle_workers.hpp>
#include <coil/exec/detail/injector.hpp>
#include <coil/exec/detail/work.hpp>
#include <coil/exec/detail/work_stealing_deque.hpp>
#include <coil/exec/thread_pool.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace coil {

/// A thread of the pool, with a queue from which the others steal.
class alignas(64) thread_pool::worker {
public:
    worker(state& pool, unsigned number) noexcept : pool_(pool), random_(number + 1) {}

    void run() noexcept;
    /// Called on its own thread.
    void push(detail::work& w) noexcept;

    [[nodiscard]] const state& pool() const noexcept { return pool_; }
    auto& queue() noexcept { return queue_; }
    [[nodiscard]] bool looks_empty() const noexcept { return queue_.looks_empty(); }

    /// The worker of this thread.
    static constinit inline thread_local worker* current = nullptr;

    static constexpr std::size_t largest_batch = 16;

private:
    detail::work* next_work() noexcept;
    detail::work* poll_global_queue() noexcept;
    detail::work* find_work() noexcept;
    detail::work* search() noexcept;
    detail::work* steal() noexcept;

    state& pool_;
    detail::basic_work_stealing_deque<detail::work> queue_;
    detail::basic_idle_workers<>::slot slot_;
    unsigned turns_ = 0;
    unsigned random_;
    bool spinning_pays_ = true;
};

struct thread_pool::state final : detail::waiting_threads {
    explicit state(thread_pool_options o, unsigned threads)
        : options(std::move(o)), idle_workers(threads) {
        enter_list();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() { leave_list(); }

    /// For the detection of deadlocks: whether all workers sleep.
    [[nodiscard]] std::optional<waiting_threads::state> now_waiting() const noexcept override;

    void start();
    /// Submits to the queue that all workers share.
    void inject(detail::work& w) noexcept;
    void stop() noexcept;
    void join() noexcept;
    void check_may_block(const char* what) const;

    /// Takes a fair share of the injected work, at most `most` pieces: returns the oldest, and
    /// pushes the others to the worker's queue so that they are popped in order.
    detail::work* take_injected(worker& who, std::size_t most) noexcept;
    /// Whether there is work that a worker could take. Does not check the injector, see its arm().
    [[nodiscard]] bool work_waits() const noexcept;
    /// Called after publishing work that others may take.
    void wake_for_more() noexcept;

    const thread_pool_options options;
    mutable detail::basic_idle_workers<> idle_workers;
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<std::thread> threads;

    // written by other threads
    alignas(64) detail::basic_injector<detail::queue_node> injector;

    // protects the consumer side of the injector
    alignas(64) std::mutex taking;
    detail::queue_node* backlog = nullptr;
    std::atomic<std::size_t> backlog_size{0};

    std::mutex joining;
    // protects the number of stop() calls in progress; the destructor waits until it is 0
    std::mutex stopping;
    std::condition_variable stopped;
    unsigned stops_under_way = 0;
};

} // namespace coil
