#pragma once

#include <coil/base/exchange.hpp>
#include <coil/compose/detail/nursery.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace coil {

/// A handle of one child of a scope or supervisor: stops the child, or awaits its result.
/// Move-only; destroying the handle does not affect the child.
///
///     auto c = co_await s.spawn(fetch(url));
///     ...
///     c.cancel();               // asks this child alone to stop
///     auto page = co_await c;   // its value, or its exception
///
/// co_await returns the child's value, once, or throws the child's exception. It throws
/// std::system_error with std::errc::operation_canceled if the scope or supervisor is destroyed
/// first, or if the awaiting task is asked to stop; a stop of the awaiting task does not affect the
/// child.
///
/// Threading: used on the context of the children, except cancel(), which may be called from any
/// thread. The handle may outlive the scope or supervisor but not its context.
template <class T = void>
class child_handle : public detail::not_its_result<child_handle<T>> {
public:
    child_handle(child_handle&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    child_handle& operator=(child_handle&& other) noexcept {
        if (this != &other) {
            reset();
            state_ = coil::detail::exchange(other.state_, nullptr);
        }
        return *this;
    }
    ~child_handle() { reset(); }

    /// Asks the child to stop: its operations return -ECANCELED. Does not wait.
    void cancel() noexcept { state().cancel(); }
    /// Whether the child has ended.
    [[nodiscard]] bool done() const noexcept { return state().has_ended(); }
    /// The name passed to spawn().
    [[nodiscard]] std::string_view name() const noexcept { return state().name(); }

    class awaiter : detail::child_wait {
    public:
        explicit awaiter(detail::child_state<T>& state) noexcept : state_(state) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;
        ~awaiter() {
            if (state_.waiter() == this) {
                state_.waiter() = nullptr;
            }
            if (pending()) {
                stop_observing();
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return state_.has_ended(); }
        template <class P>
        void await_suspend(std::coroutine_handle<P> waiter) noexcept {
            detail::check_child_wait(state_);
            state_.waiter() = this;
            begin(detail::required_loop(), waiter, detail::wait_kind::child);
            observe<awaiter>(detail::stop_token_of(waiter));
        }
        T await_resume() {
            resumed();
            if (!state_.has_ended()) {
                detail::throw_cancelled_wait();
            }
            return state_.take();
        }

        /// Whether await_resume() throws. Precondition: the wait is over.
        [[nodiscard]] bool has_failed() const noexcept {
            return !state_.has_ended() || state_.has_failed();
        }
        /// Used by combinators instead of await_resume(): the result stays with the handle.
        void discard() noexcept { resumed(); }

    private:
        friend class detail::awaiter_base;

        void cancel() noexcept {
            if (pending()) {
                state_.waiter() = nullptr;
                finish();
            }
        }

        detail::child_state<T>& state_;
    };

    [[nodiscard]] awaiter operator co_await() const noexcept { return awaiter(state()); }

    /// For internal use by spawn().
    explicit child_handle(detail::child_state<T>& state) noexcept : state_(&state) {}

private:
    [[nodiscard]] detail::child_state<T>& state() const noexcept {
        if (state_ == nullptr) [[unlikely]] {
            detail::end_with_misuse("a moved-from child_handle was used");
        }
        return *state_;
    }
    void reset() noexcept {
        if (state_ != nullptr) {
            coil::detail::exchange(state_, nullptr)->release();
        }
    }

    detail::child_state<T>* state_;
};

/// The awaitable returned by supervisor::spawn().
template <class T>
class supervised_spawn : detail::child_wait {
public:
    supervised_spawn(detail::nursery& of, task<T>&& work, std::string_view name,
                     const std::source_location& where)
        : state_(new detail::child_state<T>(std::move(work), name, where)), handle_(*state_) {
        of.add(*state_);
    }
    supervised_spawn(const supervised_spawn&) = delete;
    supervised_spawn& operator=(const supervised_spawn&) = delete;
    ~supervised_spawn() { end_as_child(); }

    [[nodiscard]] bool await_ready() const noexcept { return state_->has_started(); }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        state_->waiter() = this;
        begin(detail::required_loop(), waiter, detail::wait_kind::child);
        observe<supervised_spawn>(detail::stop_token_of(waiter));
    }
    child_handle<T> await_resume() {
        resumed();
        if (!state_->has_started()) {
            detail::throw_cancelled_wait();
        }
        return std::move(handle_);
    }

    /// Converts to the handle without waiting until fewer than max_children are running.
    operator child_handle<T>() && noexcept { return std::move(handle_); }

    /// Used by combinators and by the destructor: a child that has not started is never started.
    void end_as_child() noexcept {
        if (pending()) {
            discard_result();
            stop_observing();
            resumed();
        }
    }

private:
    friend class detail::awaiter_base;

    void cancel() noexcept {
        if (pending()) {
            discard_result();
            finish();
        }
    }
    void discard_result() noexcept {
        state_->waiter() = nullptr;
        if (detail::nursery* const owner = state_->owner()) {
            owner->withdraw(*state_);
        }
    }

    detail::child_state<T>* state_;
    child_handle<T> handle_;
};

} // namespace coil
