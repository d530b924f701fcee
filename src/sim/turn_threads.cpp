#include "turn_threads.hpp"

#include "world_state.hpp"

#include <coil/uring/syscall.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace coil::sim::detail {

turn_threads::~turn_threads() {
    ends_ = true;
    for (const auto& each : executors_) {
        allow(*each);
        each->thread.join();
    }
}

void turn_threads::allow(executor& next) noexcept {
    const std::scoped_lock lock(mutex_);
    next.may_run = true;
    next.signal.notify_one();
}

void turn_threads::wait_until_allowed(executor& own) noexcept {
    std::unique_lock lock(mutex_);
    own.signal.wait(lock, [&own] { return own.may_run; });
    own.may_run = false;
}

void turn_threads::switch_to(executor& next) noexcept {
    executor& own = self();
    allow(next);
    wait_until_allowed(own);
}

turn_threads::executor& turn_threads::idle_executor() {
    if (!idle_.empty()) {
        executor& one = *idle_.back();
        idle_.pop_back();
        return one;
    }
    executors_.push_back(std::make_unique<executor>());
    executor& made = *executors_.back();
    // The new thread gets the number of the world's thread, because only that thread may use the
    // world's rings.
    made.thread = std::thread(
        [this, &made, number = uring::detail::number_this_thread()] { run(made, number); });
    return made;
}

/// The function of a thread other than the world's: it begins turns while an older turn waits.
void turn_threads::run(executor& own, std::uint64_t thread_number) noexcept {
    uring::detail::thread_number = thread_number;
    current = &own;
    wait_until_allowed(own);
    while (!ends_) {
        world_.step_for_waiting();
        if (executor* const resumer = std::exchange(own.resumer, nullptr)) {
            idle_.push_back(&own); // the turn that began here has ended
            switch_to(*resumer);
        }
    }
}

void turn_threads::wait(coil::detail::event_loop& loop) noexcept {
    executor& own = self();
    executor* next = std::exchange(own.resumer, nullptr);
    try {
        if (next == nullptr) {
            next = &idle_executor();
        }
        waiting_.push_back({&loop, &own});
    } catch (const std::exception&) {
        world_.fatal_error("no memory or no thread to run other turns while a turn waits");
    }
    switch_to(*next);
}

void turn_threads::resume(const waiting_turn& turn) noexcept {
    executor& next = *turn.on;
    next.resumer = &self();
    switch_to(next);
}

bool turn_threads::continue_ready() noexcept {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [](const waiting_turn& w) { return w.loop->has_messages(); });
    if (found == waiting_.end()) {
        return false;
    }
    const waiting_turn turn = *found;
    waiting_.erase(found);
    fruitless_ = 0;
    resume(turn);
    return true;
}

bool turn_threads::continue_any() noexcept {
    constexpr std::size_t often = 64; // attempts for each waiting turn
    if (waiting_.empty() || ++fruitless_ > often * waiting_.size()) {
        return false;
    }
    const waiting_turn turn = waiting_.front();
    waiting_.pop_front();
    resume(turn);
    return true;
}

void turn_threads::take_over() noexcept {
    if (current == nullptr && base_.resumer != nullptr) {
        idle_.push_back(std::exchange(base_.resumer, nullptr));
    }
}

} // namespace coil::sim::detail
