#pragma once

#include <coil/context/resume_on.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/home.hpp>
#include <coil/exec/on.hpp>
#include <coil/exec/schedule.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// The last step of an await in an async_task: returns to its executor, if the coroutine is
/// elsewhere.
class homing_awaiter : remote_wait {
public:
    explicit homing_awaiter(const home& where) noexcept : where_(where) {}
    ~homing_awaiter() = default;

    [[nodiscard]] bool await_ready() const noexcept {
        if (!where_.place.executor.is_here()) {
            return false;
        }
        if (current_loop == nullptr) {
            current_place = where_.place; // a coroutine below may have moved here by itself
        }
        return true;
    }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        begin(waiter, where_);
        if (root() != nullptr && has_moved(*root())) {
            make_unowned(*root());
        }
        beginning now(*this);
        try {
            send();
        } catch (...) {
            drop();
        }
        if (!now.is_over()) {
            return true;
        }
        stay();
        return false;
    }
    void await_resume() noexcept { end(); }

private:
    /// Whether one of coil's awaits has moved the root to the context that runs here. A coroutine
    /// that something else has resumed here leaves its root where it was: in the list of another
    /// context, whose thread may be writing it, or in none.
    [[nodiscard]] bool has_moved(const promise_base& root) const noexcept {
        return current_loop != nullptr &&
               (where_.place.executor.is_context() || !is_unowned(root)) &&
               current_loop->has_task(root);
    }

    const home where_;
};

/// How a task passes on the result of an await.
template <class A>
using homing_result = std::conditional_t<std::is_lvalue_reference_v<await_result_t<A>>,
                                         await_result_t<A>, std::remove_cvref_t<await_result_t<A>>>;

/// Awaits anything, and returns to the executor afterwards.
template <class A>
task<homing_result<A>> come_home(A&& what, home where) {
    using result_type = homing_result<A>;
    std::exception_ptr error;
    if constexpr (std::is_void_v<result_type>) {
        try {
            co_await static_cast<A&&>(what);
        } catch (...) {
            error = std::current_exception();
        }
        co_await homing_awaiter(where);
        if (error) {
            std::rethrow_exception(std::move(error));
        }
    } else {
        result<result_type> came;
        try {
            came.set_value(co_await static_cast<A&&>(what));
        } catch (...) {
            came.set_error(std::current_exception());
        }
        co_await homing_awaiter(where);
        co_return came.take();
    }
}

/// Awaits that resume where they were started.
template <class A>
inline constexpr bool comes_home = std::same_as<A, this_task::detail::stop_token_awaiter>;
template <class T>
inline constexpr bool comes_home<on_awaitable<T>> = true;

} // namespace coil::detail
