#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/default_executor.hpp>
#include <coil/exec/detail/async_callbacks.hpp>
#include <coil/exec/detail/async_promise.hpp>
#include <coil/exec/detail/async_state.hpp>
#include <coil/exec/executor.hpp>
#include <coil/exec/executor_arg.hpp>
#include <coil/exec/new_thread_executor.hpp>

#include <coroutine>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

/// A coroutine bound to an executor: it starts there without being awaited, and resumes there after
/// every await.
///
///     async_task<int, new_thread_executor> slow() { ...; co_return 2; }
///
///     async_task<int, looper_executor> sum() {
///         const int a = co_await slow();     // slow() runs on a new thread; sum() resumes here
///         co_return a + 1;
///     }
///
///     sum().then([](int n) { show(n); }).catching([](std::exception& e) { show(e); });
///     int n = sum().get();                   // from a thread that may block
///
/// The executor is default_executor<Executor>(), unless the coroutine's first two parameters are
/// `(coil::executor_arg_t, Executor& ex)`: then it is `ex`, which must outlive the coroutine. (If
/// Executor is any_executor, whose parameter may also be passed by value, the task keeps a copy; a
/// copy that owns its executor keeps it alive.)
///
/// The coroutine may await anything, and always resumes on its executor. Awaits that need a
/// context, such as the operations of coil::io, require an executor that is a context (io_context,
/// runtime). A task<> that it awaits runs on its executor.
///
/// Results: get() and co_await on a named task return a copy, any number of times and from any
/// thread. On a temporary or moved task, or if T cannot be copied, they move the value out; doing
/// that again throws std::logic_error. References are returned as they are. An exception of any
/// type is rethrown each time. An exception that get, co_await or catching has not received when
/// both the task object and the coroutine have ended goes to the on_unhandled_exception of the
/// current context, or is printed.
///
/// Callbacks run in the order in which they were added, on the thread that ends the task, before
/// awaiting coroutines resume. A callback that is added to a finished task runs immediately on the
/// calling thread. An exception that leaves a callback is reported like that of a detached task;
/// the other callbacks still run.
///
/// Destroying the object detaches the coroutine: it runs to its end on its executor, its frame is
/// destroyed there, and the callbacks run.
///
/// Shutdown: if the executor was shut down and drops the coroutine, or is a context that stops, the
/// frame is destroyed on that thread, and awaiting coroutines get std::system_error with
/// std::errc::operation_canceled. If no thread can be created, the executor's exception is the
/// result.
///
/// Cancellation: an async_task has no stop token. If the task that awaits it is asked to stop, the
/// await throws std::system_error with std::errc::operation_canceled, and the async_task continues
/// as if it had been detached. Objects that it refers to must live as long as it runs; otherwise
/// await it with shield().
///
/// Threading: the coroutine always resumes on its executor. An awaiter resumes on its own context
/// or executor; without one, on the thread that ended the task. done(), get(), co_await and the
/// functions that add callbacks may be called from several threads concurrently. Moving and
/// destroying the object are not thread-safe.
template <class T = void, class Executor = new_thread_executor>
class [[nodiscard("dropping an async_task detaches it and loses its result: store it, or "
                  "add a callback")]] COIL_CORO_TYPE async_task {
public:
    using promise_type = detail::async_promise<T, Executor>;
    using value_type = T;
    using executor_type = Executor;

    async_task(async_task&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    async_task& operator=(async_task&& other) noexcept {
        if (this != &other) {
            reset();
            state_ = coil::detail::exchange(other.state_, nullptr);
        }
        return *this;
    }
    ~async_task() { reset(); }

    /// Whether get() would return without blocking.
    [[nodiscard]] bool done() const noexcept { return state().done(); }

    /// Blocks this thread until the task is done. On a thread that runs a context, which blocking
    /// would stall, it throws std::system_error with std::errc::resource_deadlock_would_occur
    /// unless the task is done; use co_await there. On the only thread of the task's own executor
    /// it would deadlock.
    T get() & {
        wait();
        return state().copy();
    }
    T get() && {
        wait();
        return state().take();
    }

    /// Calls `f` with the result, if there is one: as `const T&` if `f` accepts that, otherwise by
    /// moving the value out, which is possible once. T& is passed as it is; for void there is no
    /// argument.
    template <class F>
        async_task& then(F f) & COIL_EXPLAIN_THEN(F, T) {
        detail::add_then<T>(state(), std::move(f));
        return *this;
    }
    /// Calls `f` with the exception, if there is one, in the first of these forms that `f` accepts:
    /// a std::exception_ptr, a std::exception&, no argument, its parameter type. In the second and
    /// last form, `f` is called only if the exception is of that type.
    template <class F>
    async_task& catching(F f) & {
        detail::add_catching(state(), std::move(f));
        return *this;
    }
    /// Calls `f()` when the task is done, with a result or an exception.
    template <class F>
    async_task& finally(F f) & {
        detail::add_finally(state(), std::move(f));
        return *this;
    }
    template <class F>
        async_task&& then(F f) && COIL_EXPLAIN_THEN(F, T) {
        return std::move(then(std::move(f)));
    }
    template <class F>
    async_task&& catching(F f) && {
        return std::move(catching(std::move(f)));
    }
    template <class F>
    async_task&& finally(F f) && {
        return std::move(finally(std::move(f)));
    }

    template <bool Takes>
    class awaiter : detail::remote_op, detail::away_node, detail::async_state_base::waiter {
    public:
        explicit awaiter(detail::async_state<T>& state) noexcept
            : detail::away_node(&is_still_away),
              detail::async_state_base::waiter(static_cast<detail::remote_op&>(*this)),
              state_(state) {}
        ~awaiter() {
            on_stop_.reset();
            if (is_elsewhere()) [[unlikely]] {
                if (state_.remove(*this)) {
                    end();
                } else {
                    wait_until_back(nullptr);
                }
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return state_.done(); }
        template <class P>
        bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
            return start(coroutine,
                         {detail::stop_token_of(coroutine), detail::nearest_root(coroutine)});
        }
        /// Called by an awaiter that contains this one; `above` replaces the token and the root of
        /// the coroutine's promise.
        bool start(std::coroutine_handle<> coroutine, const detail::stop_detour& above) noexcept {
            begin(coroutine, above.root);
            this->below = above.root;
            if (above.token.stop_possible()) {
                on_stop_.emplace(above.token, leaver{*this});
            }
            detail::event_loop* const loop = target().loop;
            const auto answer = state_.add(*this, above.token);
            if (answer == detail::async_state_base::answer::waits) {
                if (!suspend()) {
                    return false;
                }
                if (loop != nullptr) { // otherwise this may have been destroyed
                    go_away(loop->tasks().away(), nearest());
                }
                return true;
            }
            this->refused = answer == detail::async_state_base::answer::stopped;
            end();
            return false;
        }
        T await_resume() {
            discard();
            throw_if_executor_lost("co_await of an async_task");
            if (this->refused) [[unlikely]] {
                detail::throw_async_left();
            }
            if constexpr (Takes) {
                return state_.take();
            } else {
                return state_.copy();
            }
        }

        /// Called when the wait is over. Returns whether await_resume() will throw.
        [[nodiscard]] bool has_failed() const noexcept {
            return lost_executor() || this->refused || state_.has_failed();
        }
        /// Used by combinators instead of await_resume(): the result stays with the task.
        void discard() noexcept {
            on_stop_.reset();
            come_back();
            end();
        }

    private:
        struct leaver {
            awaiter& self;
            void operator()() const noexcept { self.state_.leave(self); }
        };

        /// A shutdown need not wait: the async_task does not refer to this frame once the
        /// destructor has withdrawn the await.
        static bool is_still_away(detail::away_node&, request) noexcept { return false; }

        detail::async_state<T>& state_;
        std::optional<inplace_stop_callback<leaver>> on_stop_;
    };

    awaiter<false> operator co_await() & noexcept { return awaiter<false>(state()); }
    awaiter<true> operator co_await() && noexcept { return awaiter<true>(state()); }

private:
    friend promise_type;
    explicit async_task(detail::async_state<T>& state) noexcept : state_(&state) {}

    [[nodiscard]] detail::async_state<T>& state() const noexcept {
        if (state_ == nullptr) [[unlikely]] {
            detail::end_with_misuse("an async_task that was moved from is used.");
        }
        return *state_;
    }

    void wait() const {
        if (detail::current_loop != nullptr && !state().has_result()) {
            throw std::system_error(
                std::make_error_code(std::errc::resource_deadlock_would_occur),
                "coil: async_task::get() would block a context's thread; co_await the task");
        }
        state().wait_blocking();
    }

    void reset() noexcept {
        if (auto* const state = coil::detail::exchange(state_, nullptr)) {
            state->release();
        }
    }

    detail::async_state<T>* state_;
};

namespace detail {

template <class T, class E>
inline constexpr bool returns_by_itself<async_task<T, E>> = true;

template <class T, class E>
async_task<T, E> async_promise<T, E>::get_return_object() noexcept {
    return async_task<T, E>(this->state());
}

} // namespace detail

} // namespace coil
