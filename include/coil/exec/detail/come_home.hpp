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

/// The last step of an await in an async_task: back to its executor, if the coroutine is not there.
class homing_awaiter : remote_wait {
public:
    /// `may_have_moved`: whether what was awaited was one of coil's, which take the root along.
    homing_awaiter(const home& where, bool may_have_moved) noexcept
        : where_(where), may_have_moved_(may_have_moved) {}
    ~homing_awaiter() = default;

    [[nodiscard]] bool await_ready() const noexcept {
        if (!where_.place.executor.is_here()) {
            return false;
        }
        if (current_loop == nullptr) {
            current_place = where_.place; // somebody below may have come here by itself
        }
        return true;
    }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        begin(waiter, where_);
        if (root() != nullptr && may_have_moved_) {
            set_adrift(*root());
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
    const home where_;
    const bool may_have_moved_;
};

template <class A>
inline constexpr bool moves_roots = std::same_as<A, hop_awaiter> || std::same_as<A, move_awaiter>;
template <class T>
inline constexpr bool moves_roots<task<T>> = true;

/// What of an await's result is handed on by a task.
template <class A>
using homing_result = std::conditional_t<std::is_lvalue_reference_v<await_result_t<A>>,
                                         await_result_t<A>, std::remove_cvref_t<await_result_t<A>>>;

/// Awaits anything, and comes back from wherever that has ended.
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
        co_await homing_awaiter(where, moves_roots<std::remove_cvref_t<A>>);
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
        co_await homing_awaiter(where, moves_roots<std::remove_cvref_t<A>>);
        co_return came.take();
    }
}

/// Awaits that come back by themselves to where they were begun.
template <class A>
inline constexpr bool comes_home = std::same_as<A, this_task::detail::stop_token_awaiter>;
template <class T>
inline constexpr bool comes_home<on_awaitable<T>> = true;

} // namespace coil::detail
