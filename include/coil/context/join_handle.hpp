#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/join_state.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/backoff.hpp>
#include <coil/core/detail/stop_token_awaiter.hpp>
#include <coil/core/task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <coroutine>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace coil {

template <class T>
class join_handle;

namespace detail {

/// The stop source of the task. Precondition: the handle was not moved from.
template <class T>
inplace_stop_source& stop_source_of(join_handle<T>& handle) noexcept {
    return handle.state().stop_source();
}

} // namespace detail

/// Owns the result of a spawned task. Move-only.
///
///     join_handle<int> h = spawn(answer());
///     int n = co_await h;            // from a coroutine, on any context
///     int m = h.get();               // from a thread that runs no context: blocks
///
/// Either way of joining returns the value, or rethrows the task's exception; it may be done once.
/// If the task's context stopped first, it throws std::system_error with
/// std::errc::operation_canceled. Destroying the handle detaches the task: it continues, and an
/// exception that leaves it goes to its context's on_unhandled_exception. (If the handle is
/// destroyed after the task has ended, the exception goes to the context that runs on the
/// destroying thread, or to stderr, because the task's own context may no longer exist.)
///
/// Threading: the handle may be used by one thread at a time; the task may run on any other.
///
/// Cancellation: cancel() requests a stop of the task.
template <class T = void>
class [[nodiscard(
    "dropping a join_handle detaches the task; use co_spawn to say so")]] COIL_WARN_UNUSED
    join_handle : public detail::not_its_result<join_handle<T>> {
public:
    join_handle(join_handle&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    join_handle& operator=(join_handle&& other) noexcept {
        if (this != &other) {
            reset();
            state_ = coil::detail::exchange(other.state_, nullptr);
        }
        return *this;
    }
    /// Move-only: copying produces a readable compiler error.
    join_handle(const join_handle&)
        COIL_DELETE_COPY("a task is joined once: write std::move(h), or co_await h");
    join_handle& operator=(const join_handle&)
        COIL_DELETE_COPY("a task is joined once: write std::move(h), or co_await h");
    ~join_handle() { reset(); }

    /// Whether get() would return without blocking.
    [[nodiscard]] bool done() const noexcept { return state().done(); }

    /// Blocks this thread until the task is done. On a thread that runs a context, which blocking
    /// would stall, it throws std::system_error with std::errc::resource_deadlock_would_occur
    /// unless the task is done; use co_await there.
    T get() {
        if (detail::current_loop != nullptr && !done()) {
            throw std::system_error(
                std::make_error_code(std::errc::resource_deadlock_would_occur),
                "coil: join_handle::get() would block a context's thread; co_await the handle");
        }
        state().wait_blocking();
        if (!done()) {
            throw std::logic_error("coil: this join_handle is being joined already");
        }
        return state().take();
    }

    /// Produces a readable compiler error.
    template <class Self = T>
    T join() COIL_DELETE("await the handle, co_await h; outside of a coroutine, h.get()");

    /// Requests a stop of the task: its awaits return -ECANCELED. Does not wait; join to wait for
    /// its end.
    void cancel() noexcept { state().cancel(); }

    class awaiter : protected detail::awaiter_base {
    public:
        explicit awaiter(detail::join_state<T>& state) noexcept : state_(state) {}
        awaiter(const awaiter&) = delete;
        awaiter& operator=(const awaiter&) = delete;
        ~awaiter() {
            // Destroyed while waiting. A notification that can no longer be withdrawn is in this
            // loop's inbox or will be there within a few instructions.
            if (pending() && !state_.withdraw_waiter(waiter_)) {
                for (detail::backoff wait; pending(); wait.once_more()) {
                    loop().deliver_inbox();
                }
            }
            leave_if_under_way();
        }

        [[nodiscard]] bool await_ready() const noexcept { return state_.done(); }

        template <class P>
        bool await_suspend(std::coroutine_handle<P> waiter) {
            begin(detail::required_loop(), waiter, detail::wait_kind::join);
            waiter_.self = this;
            if (state_.register_waiter(waiter_)) {
                return true;
            }
            resumed();
            if (!state_.done()) {
                throw std::logic_error("coil: this join_handle is being joined already");
            }
            return false;
        }

        T await_resume() {
            resumed();
            return state_.take();
        }

        /// Called when the wait is over. Returns whether await_resume() will throw.
        [[nodiscard]] bool has_failed() const noexcept { return state_.has_failed(); }
        /// For the message about an exception that no coroutine receives.
        [[nodiscard]] detail::task_label label() const noexcept { return state_.label(); }
        /// Called instead of await_resume(): the result stays in the handle.
        void discard() noexcept { resumed(); }

    protected:
        struct join_waiter : detail::join_state_base::waiter, detail::queue_node {
            join_waiter() noexcept : waiter{&notify_owner} {}

            /// Called on the task's thread. An awaiter on another thread may be destroyed as soon
            /// as its node is posted.
            static void notify_owner(waiter& base) noexcept {
                auto& w = static_cast<join_waiter&>(base);
                if (w.self->loop().on_owner_thread()) {
                    w.self->finish();
                    return;
                }
                w.deliver = [](detail::queue_node& node, detail::event_loop&) noexcept {
                    static_cast<join_waiter&>(node).self->finish();
                };
                w.self->loop().post(w);
            }

            awaiter* self = nullptr;
        };

        detail::join_state<T>& state_;
        join_waiter waiter_;
    };

    awaiter operator co_await() noexcept { return awaiter(state()); }

    class stoppable_join;
    /// For internal use by with_stop_token().
    [[nodiscard]] stoppable_join join_until_stopped() noexcept;

private:
    friend class io_context;
    friend inplace_stop_source& detail::stop_source_of<T>(join_handle& handle) noexcept;
    explicit join_handle(detail::join_state<T>* state) noexcept : state_(state) {}

    [[nodiscard]] detail::join_state<T>& state() const noexcept {
        if (state_ == nullptr) [[unlikely]] {
            detail::end_with_misuse("a join_handle that was moved from is used.");
        }
        return *state_;
    }

    void reset() noexcept {
        if (auto* state = coil::detail::exchange(state_, nullptr)) {
            state->drop();
        }
    }

    detail::join_state<T>* state_;
};

/// A join that a stop of the awaiting task ends. The joined task is not affected.
template <class T>
class join_handle<T>::stoppable_join : public awaiter {
public:
    using awaiter::awaiter;
    ~stoppable_join() {
        if (this->pending()) {
            this->stop_observing(); // may end the wait
        }
    }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        const inplace_stop_token token = detail::stop_token_of(waiter);
        const bool waits = awaiter::await_suspend(waiter);
        if (waits) {
            this->template observe<stoppable_join>(token);
        }
        return waits;
    }
    T await_resume() {
        if (!this->state_.done()) {
            this->resumed();
            throw std::system_error(std::make_error_code(std::errc::operation_canceled),
                                    "coil: the join of a join_handle was asked to stop");
        }
        return awaiter::await_resume();
    }

private:
    friend class detail::awaiter_base;

    void cancel() noexcept {
        if (this->pending() && this->state_.withdraw_waiter(this->waiter_)) {
            this->finish();
        }
    }
};

template <class T>
typename join_handle<T>::stoppable_join join_handle<T>::join_until_stopped() noexcept {
    return stoppable_join(state());
}

namespace detail {

template <class T>
task<T> join_until_stopped(join_handle<T>& handle) {
    co_return co_await handle.join_until_stopped();
}
/// Takes the only handle of a task: if the join ends first, the task is asked to stop.
template <class T>
task<T> join_sole_until_stopped(join_handle<T> handle) {
    struct stop_at_end {
        join_handle<T>& handle;
        ~stop_at_end() {
            if (!handle.done()) {
                handle.cancel();
            }
        }
    };
    const stop_at_end at_end{handle};
    co_return co_await handle.join_until_stopped();
}

} // namespace detail

/// Joins a task, and ends the join with std::errc::operation_canceled if `token` or the awaiting
/// task is asked to stop. (Without this, a join waits for the end of the task.) The task of a named
/// handle is not affected: it continues and may be joined again. The task of a temporary handle is
/// asked to stop and continues detached.
///
///     auto h = spawn(work());
///     int n = co_await with_stop_token(h, session.get_token());
template <class T, detail::any_stop_token Token>
task<T> with_stop_token(join_handle<T>& handle, Token token) {
    return with_stop_token(detail::join_until_stopped(handle), std::move(token));
}
template <class T, detail::any_stop_token Token>
task<T> with_stop_token(join_handle<T>&& handle, Token token) {
    return with_stop_token(detail::join_sole_until_stopped(std::move(handle)), std::move(token));
}

} // namespace coil
