#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/core/detail/debug_reports.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/task_promise.hpp>
#include <coil/core/this_task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class A>
inline constexpr bool is_any_task = false;
template <class T>
inline constexpr bool is_any_task<task<T>> = true;

} // namespace detail

/// A lazy coroutine: it starts when it is awaited, and can be awaited once.
///
///     task<int> answer() { co_return 42; }
///     int n = co_await answer();
///
/// T may be void, a reference, move-only, or not default-constructible. An exception that leaves
/// the body is rethrown by the co_await. The task owns its frame; a task that is never awaited is
/// destroyed without having run, which debug builds report on stderr. A top-level task is not
/// awaited but passed to io_context::co_spawn, spawn or coil::run.
///
/// Threading: a task runs on the context that awaits or spawned it. The task object is not
/// thread-safe.
///
/// Lifetime: parameters live in the frame by value; what a reference parameter refers to must
/// outlive the task. The captures of a lambda live in the lambda, not in the frame: a coroutine
/// lambda with captures must outlive its task. For a detached task, pass parameters instead. Frames
/// are aligned to 64 bytes, so locals may be declared up to alignas(64). Destroying a coroutine
/// first destroys the coroutine it awaits; stack use does not grow with the depth.
template <class T = void>
class [[nodiscard(
    "did you forget to co_await?")]] COIL_CORO_TYPE COIL_WARN_UNUSED COIL_AWAIT_ELIDABLE task {
public:
    using promise_type = detail::task_promise<T>;
    using value_type = T;

    task(task&& other) noexcept : coroutine_(coil::detail::exchange(other.coroutine_, nullptr)) {
        own();
    }
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            destroy();
            coroutine_ = coil::detail::exchange(other.coroutine_, nullptr);
            own();
        }
        return *this;
    }
    /// Move-only: copying produces a readable compiler error.
    task(const task&)
        COIL_DELETE_COPY("a task is awaited or spawned once: write std::move(t), or f() directly");
    task& operator=(const task&) = delete;
    ~task() {
        static_assert(detail::can_be_a_result<T>, "a task returns an object, a T& or nothing: "
                                                  "std::array<int, 4> for int[4], T for T&&");
        destroy();
    }

    class awaiter {
    public:
        explicit awaiter(std::coroutine_handle<promise_type> coroutine) noexcept
            : coroutine_(coroutine) {
            if (!coroutine) [[unlikely]] {
                detail::end_with_misuse(detail::empty_task);
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }

        template <class P>
        detail::transfer await_suspend(std::coroutine_handle<P> parent) noexcept {
            if constexpr (std::derived_from<P, detail::promise_base>) {
                return start(parent, static_cast<detail::promise_base&>(parent.promise()));
            } else {
                return start(parent, detail::stop_token_of(parent));
            }
        }

        /// Starts the task. `origin` supplies its stop token: the parent's promise, a token, or a
        /// stop_detour.
        template <class P, class Origin>
        detail::transfer start(std::coroutine_handle<P> parent, Origin&& origin) noexcept {
            promise_type& promise = coroutine_.promise();
            if (!promise.is_fresh()) [[unlikely]] {
                detail::end_with_misuse(detail::used_task);
            }
            promise.become_child(parent, origin);
            if constexpr (std::derived_from<P, detail::promise_base>) {
                promise.begin_below(&parent.promise());
            } else {
                promise.begin_below(nullptr);
            }
            return detail::transfer_to(parent, coroutine_);
        }

        detail::result_or_void<T> await_resume() { return coroutine_.promise().outcome.take(); }

    private:
        // a copy: the task may be moved while it is awaited
        const std::coroutine_handle<promise_type> coroutine_;
    };

    awaiter operator co_await() && noexcept {
        own();
        return awaiter(typed());
    }

    template <class Self = T>
    awaiter operator co_await() & noexcept {
        static_assert(
            detail::always_false<Self>,
            "a task is awaited once: write co_await std::move(t), or co_await f() directly");
        return awaiter(typed());
    }

    /// Produces a readable compiler error: the task is used as if it were its result.
    operator detail::mistaken_for<T>() const // NOLINT(*-explicit-*)
        COIL_DELETE_MEMBER(
            "did you forget to co_await? Write co_await f() to get the result of a task");
    template <std::same_as<bool> Condition>
        requires std::is_class_v<T>
    explicit operator Condition() const
        COIL_DELETE("did you forget to co_await? Write co_await f() to get the result of a task");
    template <class Optional>
        requires std::same_as<Optional, std::optional<detail::result_or_void<T>>>
    operator Optional() const // NOLINT(*-explicit-*)
        COIL_DELETE("did you forget to co_await? Write co_await f() to get the result of a task");
    void begin() const COIL_DELETE_COPY(
        "did you forget to co_await? Write co_await f() to get the result of a task");
    void end() const COIL_DELETE_COPY(
        "did you forget to co_await? Write co_await f() to get the result of a task");
    void operator*() const COIL_DELETE_COPY(
        "did you forget to co_await? Write co_await f() to get the result of a task");
    void* operator->() const COIL_DELETE_COPY(
        "did you forget to co_await? Write co_await f() to get the result of a task");
    /// Produces a readable compiler error: the function uses `return` instead of co_return.
    template <std::same_as<detail::returned_by_mistake<T>> Result>
    task(const Result&) // NOLINT(*-explicit-*)
        COIL_DELETE_COPY("a coroutine returns its result by co_return");

    /// Gives the frame to the caller, which destroys it. Used by spawn() and by executors.
    [[nodiscard]] std::coroutine_handle<promise_type> release() noexcept {
        if (!coroutine_ || !typed().promise().is_fresh()) [[unlikely]] {
            detail::end_with_misuse(coroutine_ ? detail::used_task : detail::empty_task);
        }
        const auto coroutine = typed();
        coroutine_ = nullptr;
        return coroutine;
    }

private:
    friend promise_type;
    explicit task(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    [[nodiscard]] std::coroutine_handle<promise_type> typed() const noexcept {
        return std::coroutine_handle<promise_type>::from_address(coroutine_.address());
    }
    /// Records in the promise that this object owns the frame.
    void own() noexcept {
        if (coroutine_) {
            typed().promise().owning_handle = &coroutine_;
        }
    }
    void destroy() noexcept {
        if (coroutine_) {
#if COIL_ASSERTIONS
            if (typed().promise().is_fresh()) [[unlikely]] {
                detail::report_unrun_task(coroutine_.address());
            }
#endif
            detail::destroy_task(typed());
        }
    }

    std::coroutine_handle<> coroutine_;
};

/// Produce readable compiler errors: operands that are tasks instead of their results.
template <class L, class R>
    requires(detail::is_any_task<L> || detail::is_any_task<R>)
void operator+(const L&, const R&)
    COIL_DELETE("did you forget to co_await? Write co_await f() to get the result of a task");
template <class L, class R>
    requires(detail::is_any_task<L> || detail::is_any_task<R>)
bool operator==(const L&, const R&)
    COIL_DELETE("did you forget to co_await? Write co_await f() to get the result of a task");

/// Produces a readable compiler error: `auto [a, b] = f()` without co_await.
template <std::size_t I, class T>
int get(const task<T>&) COIL_DELETE("did you forget to co_await? Write auto [a, b] = co_await f()");

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    static_assert(alignof(task_promise) <= 2 * sizeof(void*)); // frame_of()
    static_assert(fits_into_a_frame<T>,
                  "the result of a task is aligned to 64 bytes at most: return a std::unique_ptr");
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

} // namespace detail

} // namespace coil

/// Refuses a parameter that the frame cannot align.
template <class T, class... Parameters>
struct std::coroutine_traits<coil::task<T>, Parameters...> {
    static_assert(
        (coil::detail::fits_into_a_frame<Parameters> && ...),
        "a parameter of a coroutine is aligned to 64 bytes at most: pass a reference or a "
        "std::unique_ptr");
    using promise_type = typename coil::task<T>::promise_type;
};
template <class T>
    requires requires { std::tuple_size<T>::value; }
struct std::tuple_size<coil::task<T>> : std::tuple_size<T> {};
template <std::size_t I, class T>
    requires requires { std::tuple_size<T>::value; }
struct std::tuple_element<I, coil::task<T>> {
    using type = int;
};
