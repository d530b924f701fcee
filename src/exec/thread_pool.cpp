#include "../context/spin_pause.hpp"
#include "../context/thread_name.hpp"
#include "simulated_work.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/processors.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/exec/detail/fences.hpp>
#include <coil/exec/detail/injector.hpp>
#include <coil/exec/detail/sleepers.hpp>
#include <coil/exec/detail/work_stealing_deque.hpp>
#include <coil/exec/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace coil {

using detail::work;
using steady = std::chrono::steady_clock;

class alignas(64) thread_pool::worker {
public:
    worker(state& pool, unsigned number) noexcept : pool_(pool), random_(number + 1) {}

    void run() noexcept;
    /// Called on its own thread.
    void bring(work& w) noexcept;

    [[nodiscard]] const state& pool() const noexcept { return pool_; }
    auto& queue() noexcept { return queue_; }
    [[nodiscard]] bool looks_empty() const noexcept { return queue_.looks_empty(); }

    /// The worker of this thread.
    static constinit inline thread_local worker* current = nullptr;

    static constexpr std::size_t largest_batch = 16;

private:
    work* next_in_turn() noexcept;
    work* poll_global_queue() noexcept;
    work* find_work() noexcept;
    work* search() noexcept;
    work* steal() noexcept;

    state& pool_;
    detail::basic_work_stealing_deque<work> queue_;
    detail::basic_sleepers<>::seat seat_;
    unsigned turns_ = 0;
    unsigned random_;
    bool spinning_pays_ = true;
};

struct thread_pool::state {
    explicit state(thread_pool_options o, unsigned threads)
        : options(std::move(o)), sleepers(threads) {}

    void start();
    void bring_from_elsewhere(work& w) noexcept;
    void stop() noexcept;
    void join() noexcept;
    void check_may_block(const char* what) const;

    /// Takes a fair share of the work from elsewhere, at most `most` pieces: returns the oldest,
    /// and pushes the others to `own` so that they are popped in order.
    work* take_from_elsewhere(worker& who, std::size_t most) noexcept;
    /// Whether there is work that a worker could take. Does not check the injector, see its arm().
    [[nodiscard]] bool work_waits() const noexcept;
    /// Called after publishing work that others may take.
    void tell_others() noexcept;

    const thread_pool_options options;
    detail::basic_sleepers<> sleepers;
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<std::thread> threads;

    // written by other threads
    alignas(64) detail::basic_injector<detail::queue_node> injector;

    // protects the consumer side of the injector
    alignas(64) std::mutex taking;
    detail::queue_node* backlog = nullptr;
    std::atomic<std::size_t> backlog_size{0};

    std::mutex joining;
    // locked by a stop() that is still running when the threads have ended
    std::mutex stopping;
    std::condition_variable stopped;
    unsigned stops_under_way = 0;
};

// Work from elsewhere.

void thread_pool::state::bring_from_elsewhere(work& w) noexcept {
    // Once pushed, the work may run at once and destroy the pool.
    if (!injector.push(w, [this] { sleepers.wake_one(); })) {
        w.drop();
    }
}

work* thread_pool::state::take_from_elsewhere(worker& who, std::size_t most) noexcept {
    if (backlog_size.load(std::memory_order_relaxed) == 0 && injector.looks_empty()) {
        return nullptr;
    }
    const std::lock_guard lock(taking);
    std::size_t size = backlog_size.load(std::memory_order_relaxed);
    if (size == 0) {
        const auto all = injector.take_all();
        backlog = all.oldest;
        size = all.count;
        if (size == 0) {
            return nullptr;
        }
    }
    std::array<work*, worker::largest_batch> taken{};
    // A single worker preserves the submission order.
    const std::size_t share = workers.size() == 1 ? 1 : size / workers.size() + 1;
    std::size_t count = std::min({most, taken.size(), share, size});
    for (std::size_t i = 0; i < count; ++i) {
        taken[i] = static_cast<work*>(std::exchange(backlog, backlog->next));
    }
    size -= count;
    while (count > 1 && who.queue().push(*taken[count - 1])) {
        --count;
    }
    while (count > 1) { // no memory to push them
        taken[--count]->next = backlog;
        backlog = taken[count];
        ++size;
    }
    backlog_size.store(size, std::memory_order_relaxed);
    return taken[0];
}

bool thread_pool::state::work_waits() const noexcept {
    return backlog_size.load(std::memory_order_relaxed) != 0 ||
           std::any_of(workers.begin(), workers.end(),
                       [](const auto& w) { return !w->looks_empty(); });
}

void thread_pool::state::tell_others() noexcept {
    detail::light_fence();
    if (sleepers.must_wake()) [[unlikely]] {
        sleepers.wake_one();
    }
}

// A worker.

void thread_pool::worker::bring(work& w) noexcept {
    if (!queue_.push(w)) [[unlikely]] {
        pool_.bring_from_elsewhere(w);
        return;
    }
    detail::light_fence();
    if (pool_.sleepers.must_wake()) [[unlikely]] {
        if (pool_.sleepers.stopped()) {
            while (work* const mine = queue_.pop()) {
                mine->drop();
            }
        } else {
            pool_.sleepers.wake_one();
        }
    }
}

void thread_pool::worker::run() noexcept {
    current = this;
    for (;;) {
        work* w = next_in_turn();
        if (w == nullptr) {
            w = find_work();
        }
        if (pool_.sleepers.stopped()) [[unlikely]] {
            if (w != nullptr) {
                w->drop();
            }
            break;
        }
        if (w != nullptr) [[likely]] {
            w->run();
        }
    }
    while (work* const w = queue_.pop()) {
        w->drop();
    }
    current = nullptr;
    pool_.sleepers.leave();
}

work* thread_pool::worker::next_in_turn() noexcept {
    if (++turns_ % 32 == 0) [[unlikely]] {
        if (work* const w = poll_global_queue()) {
            return w;
        }
    }
    return queue_.pop();
}

/// Prevents starvation behind younger work (guarantee G7).
work* thread_pool::worker::poll_global_queue() noexcept {
    if (turns_ % 64 == 0) {
        return queue_.steal();
    }
    work* const w = pool_.take_from_elsewhere(*this, 1);
    if (w != nullptr) {
        // for the rest, if any: the worker that was woken may have searched without success
        pool_.tell_others();
    }
    return w;
}

/// Blocks until there is work; returns null if the pool was stopped.
work* thread_pool::worker::find_work() noexcept {
    if (work* const w = pool_.take_from_elsewhere(*this, largest_batch)) {
        pool_.tell_others();
        return w;
    }
    return pool_.sleepers.look(
        seat_, [this] { return search(); },
        [this] { return !pool_.injector.arm() || pool_.work_waits(); },
        [this](auto sleep) {
            if (detail::frame_cache_overflowed) [[unlikely]] {
                detail::trim_frame_cache();
            }
            const steady::time_point begin = steady::now();
            sleep();
            spinning_pays_ = steady::now() - begin < pool_.options.spin;
        });
}

work* thread_pool::worker::search() noexcept {
    constexpr unsigned first_looks = 2;
    steady::time_point begin;
    for (unsigned looks = 0; !pool_.sleepers.stopped(); ++looks) {
        if (work* const w = pool_.take_from_elsewhere(*this, largest_batch)) {
            return w;
        }
        if (work* const w = steal()) {
            return w;
        }
        if (looks >= first_looks) {
            const steady::time_point now = steady::now();
            if (looks == first_looks) {
                begin = now;
            }
            if (!spinning_pays_ || now - begin >= pool_.options.spin) {
                spinning_pays_ = false;
                break;
            }
        }
        // A worker with work writes the words that are polled, so do not poll too often.
        for (int i = 0; i < 8; ++i) {
            detail::spin_pause();
        }
    }
    return nullptr;
}

work* thread_pool::worker::steal() noexcept {
    const auto& victims = pool_.workers;
    random_ = random_ * 1664525 + 1013904223; // any generator will do
    std::size_t i = (random_ >> 8U) % victims.size();
    for (std::size_t left = victims.size(); left > 0; --left) {
        worker& victim = *victims[i];
        if (&victim != this && !victim.looks_empty()) {
            if (work* const w = victim.queue_.steal()) {
                return w;
            }
        }
        i = i + 1 == victims.size() ? 0 : i + 1;
    }
    return nullptr;
}

// The pool.

void thread_pool::state::start() {
    detail::prepare_heavy_fence();
    const auto count = static_cast<unsigned>(sleepers.workers());
    for (unsigned i = 0; i < count; ++i) {
        workers.push_back(std::make_unique<worker>(*this, i));
    }
    try {
        threads.reserve(count);
        for (unsigned i = 0; i < count; ++i) {
            threads.emplace_back([this, i] {
                detail::name_this_thread(options.name + "-" + std::to_string(i));
                workers[i]->run();
            });
        }
    } catch (...) {
        stop();
        join();
        throw;
    }
}

void thread_pool::state::stop() noexcept {
    {
        const std::lock_guard lock(stopping);
        ++stops_under_way;
    }
    sleepers.stop();
    detail::queue_node* left = nullptr;
    detail::queue_node* rest = nullptr;
    {
        const std::lock_guard lock(taking);
        left = std::exchange(backlog, nullptr);
        backlog_size.store(0, std::memory_order_relaxed);
        rest = injector.close().oldest;
    }
    for (detail::queue_node* list : {left, rest}) {
        while (list != nullptr) {
            static_cast<work*>(std::exchange(list, list->next))->drop();
        }
    }
    // From now on workers drop what they submit.
    detail::heavy_fence();
    for (const auto& w : workers) {
        while (!w->looks_empty()) {
            if (work* const queued = w->queue().steal()) {
                queued->drop();
            }
        }
    }
    const std::lock_guard lock(stopping);
    --stops_under_way;
    stopped.notify_all();
}

void thread_pool::state::join() noexcept {
    const std::lock_guard lock(joining);
    for (std::thread& thread : threads) {
        if (thread.joinable()) {
            thread.join();
        }
    }
    std::unique_lock under_way(stopping);
    stopped.wait(under_way, [this] { return stops_under_way == 0; });
}

void thread_pool::state::check_may_block(const char* what) const {
    if (worker::current != nullptr && &worker::current->pool() == this) {
        throw std::system_error(std::make_error_code(std::errc::resource_deadlock_would_occur),
                                std::string("coil: thread_pool::") + what +
                                    " on one of the pool's threads would deadlock");
    }
}

namespace {

unsigned thread_count(unsigned asked) {
    if (asked > detail::basic_sleepers<>::most_workers) {
        throw std::invalid_argument("coil: a thread_pool has at most 32767 threads");
    }
    return asked != 0 ? asked : usable_processors();
}

} // namespace

thread_pool::thread_pool(thread_pool_options options) {
    const unsigned count = thread_count(options.threads);
    state_ = std::make_unique<state>(std::move(options), count);
    state_->start();
}

thread_pool::~thread_pool() {
    if (runs_here()) {
        detail::end_with_misuse("a thread_pool is destroyed by one of its own threads.");
    }
    drain();
    stop();
    join();
}

void thread_pool::submit(work& w) noexcept {
    if (run_simulated(w)) {
        return;
    }
    state& pool = *state_;
    worker* const here = worker::current;
    if (here != nullptr && &here->pool() == &pool) {
        here->bring(w);
    } else {
        pool.bring_from_elsewhere(w);
    }
}

void thread_pool::drain() {
    state& pool = *state_;
    pool.check_may_block("drain()");
    pool.sleepers.wait_until_idle([&pool] {
        return pool.injector.looks_empty() &&
               pool.backlog_size.load(std::memory_order_relaxed) == 0;
    });
}

void thread_pool::stop() noexcept { state_->stop(); }

void thread_pool::join() {
    state_->check_may_block("join()");
    state_->join();
}

unsigned thread_pool::size() const noexcept {
    return static_cast<unsigned>(state_->workers.size());
}

bool thread_pool::runs_here() const noexcept {
    return worker::current != nullptr && &worker::current->pool() == state_.get();
}

} // namespace coil
