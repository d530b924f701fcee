#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/paced.hpp>

#include <cstdint>

namespace coil::detail {

class event_loop;
class promise_base;
struct turn_report;

/// The last phase of a loop: ends all work immediately, and destroys no object before the objects
/// that may refer to it. Owner thread.
///
/// Every remote operation that the loop's tasks await is asked to end. The tasks that await them
/// are held back until the answers have arrived in the inbox; all others are destroyed meanwhile. A
/// remote child on this loop is destroyed like any other task, and its awaiter is notified. The
/// waiting relation is a tree in which only the inner nodes wait, so loops that shut down at the
/// same time and wait for each other's tasks make progress from the leaves upwards.
///
///     inactive ──begin()──▶ active ──step() until it is done──▶ active ──finish()──▶ inactive
///
/// run() waits between steps; turn() is for a loop with a driver. While the shutdown is active,
/// nothing that is delivered or made ready runs.
class loop_shutdown {
public:
    explicit loop_shutdown(event_loop& loop) noexcept : loop_(loop) {}
    loop_shutdown(const loop_shutdown&) = delete;
    loop_shutdown& operator=(const loop_shutdown&) = delete;

    [[nodiscard]] bool is_active() const noexcept { return active_; }
    /// Executes a whole shutdown, or the rest of one that turn() has begun.
    void run() noexcept;
    /// Executes steps until the next one would have to wait, then returns: the loops that it waits
    /// for may be on this thread, and need turns to make progress.
    [[nodiscard]] turn_report turn() noexcept;

    /// While it exists, is_active() returns true, even outside run() and turn().
    class as_active {
    public:
        explicit as_active(loop_shutdown& s) noexcept
            : shutdown_(s), was_active_(coil::detail::exchange(s.active_, true)) {}
        as_active(const as_active&) = delete;
        as_active& operator=(const as_active&) = delete;
        ~as_active() { shutdown_.active_ = was_active_; }

    private:
        loop_shutdown& shutdown_;
        const bool was_active_;
    };

private:
    enum class progress : std::uint8_t { some, waits, done };

    /// Calls `visit` if it is due.
    template <class Function>
    void visit(paced& visits, Function visit) noexcept {
        const std::int64_t begin = now_ns();
        if (visits.is_due(begin)) {
            visit();
            visits.visited(begin, now_ns());
        }
    }
    void begin() noexcept;
    void let_others_begin() noexcept;
    [[nodiscard]] progress step() noexcept;
    void finish() noexcept;
    void destroy_everything() noexcept;
    void wait(int& waited) noexcept;
    void update_held_back() noexcept;
    void refuse_unwanted() noexcept;
    [[nodiscard]] std::int64_t now_ns() noexcept;
    void destroy_held_back_if_stuck(int waited) noexcept;
    [[nodiscard]] bool destroy_free_tasks() noexcept;
    [[nodiscard]] bool destroy_listed() noexcept;
    [[nodiscard]] promise_base* next_unused() const noexcept;
    void clear_ready() noexcept;

    event_loop& loop_;
    paced hold_backs_;
    paced refusals_;
    bool active_ = false;
    std::uint64_t destroyed_ = 0;
    int turns_waited_ = 0; // the calls of turn() in this shutdown that had nothing to do
};

} // namespace coil::detail
