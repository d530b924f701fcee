#pragma once

#include <coil/context/resume_on.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/remote_op.hpp>
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
class return_op : remote_op {
public:
    explicit return_op(const resume_target& where) noexcept : where_(where) {}
    ~return_op() = default;

    [[nodiscard]] bool await_ready() const noexcept {
        if (!where_.place.executor.is_here()) {
            return false;
        }
        if (current_loop == nullptr) {
            current_place = where_.place; // an awaited coroutine may have moved here
        }
        return true;
    }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        begin_move(waiter, nearest_root(waiter), where_);
        if (root() != nullptr && has_moved(*root())) {
            set_unowned(*root());
        }
        return depart_or_drop();
    }
    void await_resume() noexcept { end(); }

private:
    /// Whether one of coil's awaits has moved the root to the context that runs here. If other code
    /// has resumed the coroutine here, its root has not moved: it is in no list, or in that of
    /// another context, whose thread may be writing to it.
    [[nodiscard]] bool has_moved(const promise_base& root) const noexcept {
        return current_loop != nullptr &&
               (where_.place.executor.is_context() || !is_unowned(root)) &&
               current_loop->has_task(root);
    }

    const resume_target where_;
};

/// The type in which a task returns the result of an await.
template <class A>
using returned_result =
    std::conditional_t<std::is_lvalue_reference_v<await_result_t<A>>, await_result_t<A>,
                       std::remove_cvref_t<await_result_t<A>>>;

/// Awaits anything, and returns to the executor afterwards.
template <class A>
task<returned_result<A>> await_and_return(A&& what, resume_target where) {
    using result_type = returned_result<A>;
    std::exception_ptr error;
    if constexpr (std::is_void_v<result_type>) {
        try {
            co_await static_cast<A&&>(what);
        } catch (...) {
            error = std::current_exception();
        }
        co_await return_op(where);
        if (error) {
            std::rethrow_exception(std::move(error));
        }
    } else {
        result<result_type> outcome;
        try {
            outcome.set_value(co_await static_cast<A&&>(what));
        } catch (...) {
            outcome.set_error(std::current_exception());
        }
        co_await return_op(where);
        co_return outcome.take();
    }
}

/// Whether an await of `A` resumes on the executor where it was started.
template <class A>
inline constexpr bool returns_by_itself = std::same_as<A, this_task::detail::stop_token_awaiter>;
template <class T>
inline constexpr bool returns_by_itself<on_awaitable<T>> = true;

} // namespace coil::detail
