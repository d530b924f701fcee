#include "../context/thread_name.hpp"
#include "simulated_work.hpp"
#include "thread_pool_state.hpp"

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/processors.hpp>
#include <coil/exec/detail/fences.hpp>

#include <stdexcept>
#include <string>
#include <system_error>

namespace coil {

using detail::work;

void thread_pool::state::inject(work& w) noexcept {
    // Once pushed, the work may run immediately and destroy the pool.
    if (!injector.push(w, [this] { idle_workers.wake_one(); })) {
        w.drop();
    }
}

void thread_pool::worker::push(work& w) noexcept {
    if (!queue_.push(w)) [[unlikely]] {
        pool_.inject(w);
        return;
    }
    detail::light_fence();
    if (pool_.idle_workers.must_wake()) [[unlikely]] {
        if (pool_.idle_workers.stopped()) {
            while (work* const mine = queue_.pop()) {
                mine->drop();
            }
        } else {
            pool_.idle_workers.wake_one();
        }
    }
}

void thread_pool::state::start() {
    detail::prepare_heavy_fence();
    const auto count = static_cast<unsigned>(idle_workers.workers());
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
    idle_workers.stop();
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

std::optional<detail::waiting_threads::state> thread_pool::state::now_waiting() const noexcept {
    const auto idle =
        idle_workers.when_idle([this] { return injector.looks_empty() && !work_waits(); });
    if (!idle) {
        return std::nullopt;
    }
    return waiting_threads::state{.threads = idle->asleep, .changes = idle->wakes};
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
    if (asked > detail::basic_idle_workers<>::most_workers) {
        throw std::invalid_argument("coil: a thread_pool has at most 32767 threads");
    }
    return asked != 0 ? asked : usable_processors();
}

} // namespace

thread_pool::thread_pool(thread_pool_options options) {
    const unsigned count = thread_count(options.threads);
    state_.reset(new state(std::move(options), count));
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
        here->push(w);
    } else {
        pool.inject(w);
    }
}

void thread_pool::drain() {
    state& pool = *state_;
    pool.check_may_block("drain()");
    pool.idle_workers.wait_until_idle([&pool] {
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
