#pragma once

#include <coil/core/detail/exception_chain.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/transfer.hpp>
#include <coil/exec/any_executor.hpp>
#include <coil/exec/default_executor.hpp>
#include <coil/exec/detail/async_state.hpp>
#include <coil/exec/detail/remote_op.hpp>
#include <coil/exec/detail/return_to_executor.hpp>
#include <coil/exec/executor_arg.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil {

template <class T, class Executor>
class async_task;

namespace detail {

/// Starts the coroutine on its executor.
class async_start : remote_op {
public:
    explicit async_start(const resume_target& where) noexcept : where_(where) {}
    ~async_start() = default;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    void await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        const resume_target where = where_;
        async_state_base& state = coroutine.promise().state();
        begin_move(coroutine, nearest_root(coroutine), where);
        try {
            if (depart()) {
                return; // may have destroyed this
            }
        } catch (...) {
            end();
            state.fail(std::current_exception());
            return;
        }
        // The executor has run the op inside submit(), on this thread. The coroutine must run on
        // the executor, so it is resumed by a nested call, in the executor's scope; then this
        // returns to the function that created the coroutine.
        const running_at scope(current_loop != nullptr ? current_place : where.place);
        resume(coroutine);
    }
    void await_resume() noexcept { end(); }

private:
    const resume_target where_;
};

struct async_end {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    transfer await_suspend(std::coroutine_handle<P> self) const noexcept {
        promise_base& promise = self.promise();
        promise.owner().finished(promise); // this destroys the frame
        return transfer_to_nobody();
    }
    void await_resume() const noexcept {}
};

/// The part of the promise that does not depend on the kind of executor. The promise is the root of
/// its tree of awaits; the shared state is its owner.
template <class T>
class async_promise_base : public promise_base {
public:
    async_promise_base(const async_promise_base&) = delete;
    async_promise_base& operator=(const async_promise_base&) = delete;

    [[nodiscard]] async_start initial_suspend() const noexcept { return async_start(executor_); }
    [[nodiscard]] async_end final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { state_.set_error(note_unhandled(*this)); }

    /// Returns to its executor after every await.
    template <class A>
    decltype(auto) await_transform(A&& what) {
        if constexpr (returns_by_itself<std::remove_cvref_t<A>>) {
            return static_cast<A&&>(what);
        } else {
            return await_and_return<A>(static_cast<A&&>(what), executor_);
        }
    }

    [[nodiscard]] async_state<T>& state() const noexcept { return state_; }

protected:
    async_promise_base(std::coroutine_handle<> self, executor_ref executor, any_executor keep)
        : executor_{nullptr, {executor, this}}, state_(*new async_state<T>(self, std::move(keep))) {
        become_root(state_);
        begin_unowned(*this);
    }
    ~async_promise_base() = default;

private:
    const resume_target executor_;
    async_state<T>& state_;
};

template <class T>
class async_promise_value : public async_promise_base<T> {
public:
    template <class U = T>
        requires std::is_convertible_v<U&&, T> ||
                 (std::same_as<T, io_result> && std::is_convertible_v<U &&, int>)
    void return_value(U&& value) {
        this->state().set_value(std::forward<U>(value));
    }

protected:
    using async_promise_base<T>::async_promise_base;
};
template <>
class async_promise_value<void> : public async_promise_base<void> {
public:
    void return_void() const noexcept {}

protected:
    using async_promise_base::async_promise_base;
};

template <class T, class E>
class async_promise final : public async_promise_value<T> {
public:
    async_promise() : async_promise(tag(), default_executor<E>()) {}
    template <class Second, class... Args>
    async_promise(const executor_arg_t&, Second& executor, Args&...)
        : async_promise(tag(), checked(executor)) {}
    /// For a member function or a lambda, whose object comes first.
    template <class Self, class Second, class... Args>
        requires(!std::same_as<std::remove_cv_t<Self>, executor_arg_t>)
    async_promise(Self&, const executor_arg_t&, Second& executor, Args&...)
        : async_promise(tag(), checked(executor)) {}

    async_task<T, E> get_return_object() noexcept;

private:
    struct tag {};
    template <class Second>
    static constexpr bool is_own =
        std::same_as<Second, E> || (std::same_as<Second, const E> && coil::executor<const E>);
    template <class Second>
    static Second& checked(Second& executor) noexcept {
        static_assert(is_own<Second>,
                      "the parameter after executor_arg_t is the async_task's Executor&");
        return executor;
    }
    template <class Same>
    async_promise(tag, Same& executor)
        : async_promise_value<T>(std::coroutine_handle<async_promise>::from_promise(*this),
                                 ref_to(executor), any_executor(executor)) {}
};

} // namespace detail

} // namespace coil
