// How the workers of a thread_pool find work.

#include "../context/spin_pause.hpp"
#include "thread_pool_state.hpp"

#include <coil/core/detail/frame_allocator.hpp>

#include <algorithm>
#include <array>
#include <chrono>

namespace coil {

using detail::work;
using steady = std::chrono::steady_clock;

work* thread_pool::state::take_injected(worker& who, std::size_t most) noexcept {
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

void thread_pool::state::wake_for_more() noexcept {
    detail::light_fence();
    if (idle_workers.must_wake()) [[unlikely]] {
        idle_workers.wake_one();
    }
}

void thread_pool::worker::run() noexcept {
    current = this;
    for (;;) {
        work* w = next_work();
        if (w == nullptr) {
            w = find_work();
        }
        if (pool_.idle_workers.stopped()) [[unlikely]] {
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
    pool_.idle_workers.leave();
}

work* thread_pool::worker::next_work() noexcept {
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
    work* const w = pool_.take_injected(*this, 1);
    if (w != nullptr) {
        // for the rest, if any: the worker that was woken for it may have searched without success
        pool_.wake_for_more();
    }
    return w;
}

/// Blocks until there is work; returns null if the pool was stopped.
work* thread_pool::worker::find_work() noexcept {
    if (work* const w = pool_.take_injected(*this, largest_batch)) {
        pool_.wake_for_more();
        return w;
    }
    return pool_.idle_workers.find_or_sleep(
        slot_, [this] { return search(); },
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
    for (unsigned looks = 0; !pool_.idle_workers.stopped(); ++looks) {
        if (work* const w = pool_.take_injected(*this, largest_batch)) {
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

} // namespace coil
