#pragma once

#include <coil/context/detail/event_loop.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace coil::sim::detail {

class world_state;

/// The threads on whose stacks a world executes turns. One of them executes at a time, so that a
/// seed still determines everything, and usually there is one: the thread that runs the world. When
/// a destructor waits in the middle of a turn, other turns run on another thread. On a single
/// stack, a wait could end only after all waits that began later.
class turn_threads {
public:
    explicit turn_threads(world_state& world) noexcept : world_(world) {}
    turn_threads(const turn_threads&) = delete;
    turn_threads& operator=(const turn_threads&) = delete;
    /// Precondition: !any_waiting().
    ~turn_threads();

    /// In a turn of `loop`: executes other turns until the loop has messages or no other turn makes
    /// progress.
    void wait(coil::detail::event_loop& loop) noexcept;

    [[nodiscard]] bool any_waiting() const noexcept { return !waiting_.empty(); }
    /// Between two turns: continues a waiting turn whose loop has messages. Returns false if there
    /// is none.
    bool continue_ready() noexcept;
    /// Called when no turn can begin: continues the turn that has waited longest, as it may send
    /// messages to others. Returns false after many such attempts without progress.
    bool continue_any() noexcept;
    void note_progress() noexcept { fruitless_ = 0; }
    /// Called between two turns by the thread that now runs the world: marks the thread that
    /// resumed it as idle.
    void take_over() noexcept;

private:
    struct executor {
        std::condition_variable signal;
        bool may_run = false;
        executor* resumer = nullptr; // blocked until the turn on this one has ended or waits again
        std::thread thread;
    };
    struct waiting_turn {
        coil::detail::event_loop* loop;
        executor* on;
    };

    [[nodiscard]] executor& self() noexcept { return current != nullptr ? *current : base_; }
    [[nodiscard]] executor& idle_executor();
    void run(executor& own, std::uint64_t thread_number) noexcept;
    void allow(executor& next) noexcept;
    /// Blocks this thread, whose executor is `own`.
    void wait_until_allowed(executor& own) noexcept;
    /// Lets `next` run, and blocks this thread until it may run again.
    void switch_to(executor& next) noexcept;
    void resume(const waiting_turn& turn) noexcept;

    static constinit inline thread_local executor* current = nullptr; // null: the world's thread

    world_state& world_;
    std::mutex mutex_;
    executor base_;
    std::vector<std::unique_ptr<executor>> executors_;
    std::vector<executor*> idle_;
    std::deque<waiting_turn> waiting_;
    std::size_t fruitless_ = 0;
    bool ends_ = false;
};

} // namespace coil::sim::detail
