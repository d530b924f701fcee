#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/queue.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

/// A coroutine that yields outside of a context, queued for its next turn.
class queued_turn {
public:
    /// The coroutine has resumed or is being destroyed. Destroys this object.
    virtual void end(bool has_resumed) noexcept = 0;

protected:
    ~queued_turn() = default;
};

/// Exists while something other than a context runs coroutines in turns on this thread: a run_loop.
class turn_taking {
public:
    turn_taking(const turn_taking&) = delete;
    turn_taking& operator=(const turn_taking&) = delete;

    /// What runs the current coroutine in turns; null if a context does, or nothing.
    [[nodiscard]] static turn_taking* here() noexcept {
        return innermost != nullptr && innermost->around_ == current_loop ? innermost : nullptr;
    }

    /// Queues `waiter`, whose top-level task or child is `root`. Null: it is resumed without being
    /// queued. Throws std::bad_alloc.
    [[nodiscard]] virtual queued_turn* queue(std::coroutine_handle<> waiter,
                                             promise_base* root) = 0;

protected:
    turn_taking() noexcept : outer_(std::exchange(innermost, this)) {}
    ~turn_taking() { innermost = outer_; }

private:
    static constinit inline thread_local turn_taking* innermost = nullptr;

    event_loop* const around_ = current_loop;
    turn_taking* const outer_;
};

/// The awaiter of yield().
class [[nodiscard("did you forget to co_await?")]] yield_awaiter : queue_node {
public:
    yield_awaiter() noexcept { coroutine = nullptr; }
    yield_awaiter(yield_awaiter&&) noexcept { coroutine = nullptr; } // only before it is awaited
    yield_awaiter& operator=(const yield_awaiter&) = delete;
    ~yield_awaiter() {
        if (elsewhere_ != nullptr) [[unlikely]] {
            elsewhere_->end(false);
        } else if (coroutine != nullptr && current_loop != nullptr) [[unlikely]] {
            current_loop->withdraw(*this, coroutine); // destroyed while queued
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) {
        if (turn_taking* const turns = turn_taking::here()) [[unlikely]] {
            elsewhere_ = turns->queue(waiter, nearest_root(waiter));
            return;
        }
        event_loop& loop = required_loop();
        coroutine = waiter;
        loop.make_ready(*this, waiter);
    }
    void await_resume() noexcept {
        coroutine = nullptr;
        if (elsewhere_ != nullptr) [[unlikely]] {
            std::exchange(elsewhere_, nullptr)->end(true);
        }
    }

private:
    queued_turn* elsewhere_ = nullptr;
};

/// Awaited by a task that has what it wants without having waited: lets other coroutines run if the
/// task has done so too often in this resumption. Outside of a context it does nothing.
class immediate_await : public yield_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept {
        return current_loop == nullptr || turn_taking::here() != nullptr ||
               current_loop->spend_immediate_await();
    }
};

} // namespace coil::detail
