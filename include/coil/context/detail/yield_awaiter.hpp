#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/queue.hpp>

#include <coroutine>

namespace coil::detail {

class yield_awaiter;

/// A coroutine that yields outside of a context, queued for its next turn. Calls
/// yield_awaiter::leave_turn() before it resumes the coroutine, and then no longer exists.
class queued_turn {
public:
    /// The coroutine is being destroyed. Destroys this object.
    virtual void cancel() noexcept = 0;

protected:
    ~queued_turn() = default;
};

/// Exists while something other than a context runs coroutines in turns on this thread: a run_loop.
class turn_taking {
public:
    turn_taking(const turn_taking&) = delete;
    turn_taking& operator=(const turn_taking&) = delete;

    /// The executor or loop that runs the current coroutine in turns; null if a context runs it, or
    /// if no coroutine runs.
    [[nodiscard]] static turn_taking* here() noexcept {
        return exists() && innermost->around_ == current_loop ? innermost : nullptr;
    }
    /// Whether here() can be other than null on this thread.
    [[nodiscard]] static bool exists() noexcept { return innermost != nullptr; }

    /// Queues `waiter`, which belongs to the top-level task or child `root` and awaits `at`, unless
    /// it is resumed without being queued. Without memory for its place in the queue it may resume
    /// before this returns, and destroy `at`.
    virtual void queue(yield_awaiter& at, std::coroutine_handle<> waiter,
                       promise_base* root) noexcept = 0;

protected:
    turn_taking() noexcept : outer_(coil::detail::exchange(innermost, this)) {}
    ~turn_taking() { innermost = outer_; }

private:
    friend class set_aside;

    static constinit inline thread_local turn_taking* innermost = nullptr;

    event_loop* const around_ = current_loop;
    turn_taking* const outer_;
};

/// The awaiter of yield(). `coroutine` shows where it is queued: null means nowhere, its own
/// address means in `turn_`, and any other value means in the ready queue of the current loop.
class [[nodiscard("did you forget to co_await?")]] yield_awaiter : queue_node {
public:
    yield_awaiter() noexcept { coroutine = nullptr; } // NOLINT(*-member-init): see turn_
    /// Only before it is awaited.
    yield_awaiter(yield_awaiter&&) noexcept { coroutine = nullptr; } // NOLINT(*-member-init)
    yield_awaiter& operator=(const yield_awaiter&) = delete;
    ~yield_awaiter() {
        if (coroutine != nullptr) [[unlikely]] {
            withdraw(); // destroyed while queued
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) {
        coroutine = waiter;
        if (turn_taking::exists()) [[unlikely]] {
            queue_elsewhere(waiter); // nothing follows: no register has to be saved around the call
            return;
        }
        required_loop().make_ready(*this, waiter);
    }
    void await_resume() noexcept { coroutine = nullptr; }

    /// Called by queue() when the coroutine is queued.
    void enter_turn(queued_turn& turn) noexcept {
        turn_ = &turn;
        coroutine = in_turn();
    }
    /// Called by the turn that ends, before the coroutine resumes. Returns the node with which a
    /// loop may queue the coroutine instead.
    queue_node& leave_turn(std::coroutine_handle<> waiter) noexcept {
        coroutine = waiter;
        return *this;
    }

private:
    /// Queues the coroutine for a turn here, or else on the current loop. Out of line, so that
    /// await_suspend() stays small enough to be inlined.
    template <class P>
    [[gnu::noinline, gnu::cold]] void queue_elsewhere(std::coroutine_handle<P> waiter) noexcept {
        turn_taking* const turns = turn_taking::here();
        if (turns == nullptr) {
            required_loop().make_ready(*this, waiter);
            return;
        }
        coroutine = nullptr;
        turns->queue(*this, waiter, nearest_root(waiter));
    }
    [[gnu::noinline, gnu::cold]] void withdraw() noexcept {
        if (coroutine == in_turn()) {
            turn_->cancel();
        } else if (current_loop != nullptr) {
            current_loop->withdraw(*this, coroutine);
        }
    }
    [[nodiscard]] std::coroutine_handle<> in_turn() noexcept {
        return std::coroutine_handle<>::from_address(this);
    }

    queued_turn* turn_; // written only when queued there, which saves a store per yield
};

/// Awaited by a call whose result is available without waiting: lets other coroutines run if the
/// task has made too many such calls in this resumption. Does nothing outside of a context.
class immediate_await : public yield_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept {
        return current_loop == nullptr || turn_taking::here() != nullptr ||
               current_loop->spend_immediate_await();
    }
};

} // namespace coil::detail
