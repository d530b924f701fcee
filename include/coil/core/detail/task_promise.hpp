#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/detail/exception_chain.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/io_result.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil {

template <class T>
class task;
class const_buffer;
class mutable_buffer;

} // namespace coil

namespace coil::detail {

template <class T>
inline constexpr bool always_false = false;

/// Whether a coroutine can return a T.
template <class T>
inline constexpr bool can_be_a_result =
    !std::is_array_v<T> && !std::is_function_v<T> && !std::is_rvalue_reference_v<T>;
template <class T>
using result_or_void = std::conditional_t<can_be_a_result<T>, T, void>;

/// The type to which a program that forgot co_await may try to convert a task<T>: the type of
/// the result, but int for an io_result, and bool if there is no result.
template <class T>
using mistaken_for =
    std::conditional_t<std::is_void_v<T> || !can_be_a_result<T>, bool,
                       std::conditional_t<std::is_same_v<T, io_result>, int, std::remove_cv_t<T>>>;

/// The type of the operand of `return` in a function that should be a coroutine with the result T.
template <class T>
struct returned_type {
    using type = std::remove_cvref_t<T>;
};
struct nothing_returned {};
template <>
struct returned_type<void> {
    using type = nothing_returned;
};
template <class T>
using returned_by_mistake = typename returned_type<T>::type;

/// Whether T is a view or a buffer, or a std::optional or std::expected of one.
template <class T>
inline constexpr bool is_result_view = std::ranges::borrowed_range<T>;
template <>
inline constexpr bool is_result_view<const_buffer> = true;
template <>
inline constexpr bool is_result_view<mutable_buffer> = true;
template <class T>
    requires requires(const T& t) {
        typename T::value_type;
        t.has_value();
        t.value();
    }
inline constexpr bool is_result_view<T> = is_result_view<typename T::value_type>;

/// Whether a T made from a U refers to an object that is about to be destroyed. A U that is not an
/// lvalue reference is a temporary or a local of the coroutine.
template <class T, class U>
inline constexpr bool dangles = !std::is_lvalue_reference_v<U> &&
                                (std::is_lvalue_reference_v<T> ||
                                 (is_result_view<std::remove_cv_t<T>> && std::ranges::range<U> &&
                                  !std::ranges::borrowed_range<std::remove_cv_t<U>>));

/// Whether `co_return u` converts to the result of a task<T>.
template <class T, class U>
inline constexpr bool is_returnable =
    std::is_convertible_v<U&&, T> ||
    (std::same_as<T, io_result> && std::is_convertible_v<U&&, int>);

/// Whether frames are aligned enough for a local variable of type T.
template <class T>
inline constexpr bool fits_into_a_frame = alignof(T) <= frame_alignment;
template <class T>
    requires(std::is_void_v<T> || std::is_reference_v<T>)
inline constexpr bool fits_into_a_frame<T> = true;

template <class T>
class task_promise final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept { return final_awaiter(*this); }
    void unhandled_exception() noexcept { outcome.set_error(note_unhandled(*this)); }

    template <class U = T>
        requires(!dangles<T, U> && is_returnable<T, U>)
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
        outcome.set_value(std::forward<U>(value));
    }

    /// Produces a readable compiler error.
    template <class U>
        requires dangles<T, U>
    void return_value(U&&)
        COIL_DELETE("the result would refer to a local variable or a temporary, which ends with "
                    "the coroutine: return a value, for example task<std::string>");
    template <class U>
        requires(!dangles<T, U> && !is_returnable<T, U> && awaitable<U>)
    void return_value(U&&) COIL_DELETE("did you forget to co_await? Write co_return co_await f()");
    template <class U>
        requires(!dangles<T, U> && !is_returnable<T, U> && !awaitable<U>)
    void return_value(U&&)
        COIL_DELETE("the value cannot be converted to T, the result of this task<T>");
    /// Produces a readable compiler error.
    template <class U>
    [[nodiscard]] std::suspend_never yield_value(U&&) COIL_DELETE(
        "a task has one result, by co_return: a coroutine with co_yield returns a generator<T> or "
        "an async_generator<T>");

    result<T> outcome;
};

/// The promise of a task<T> whose T is not allowed: the static_assert in ~task() is then the only
/// error.
template <class T>
    requires(!can_be_a_result<T>)
class task_promise<T> final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept;
    void unhandled_exception() noexcept;
    template <class U>
    void return_value(const U&) noexcept;

    result<void> outcome;
};

template <>
class task_promise<void> final : public promise_base {
public:
    inline task<void> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept { return final_awaiter(*this); }
    void unhandled_exception() noexcept { outcome.set_error(note_unhandled(*this)); }
    void return_void() const noexcept {}
    /// Produces a readable compiler error.
    template <class U>
    [[nodiscard]] std::suspend_never yield_value(U&&) COIL_DELETE(
        "a task has one result, by co_return: a coroutine with co_yield returns a generator<T> or "
        "an async_generator<T>");

    result<void> outcome;
};

inline constexpr const char* empty_task = "this task has already been spawned or moved from.";
inline constexpr const char* used_task = "this task was awaited before: a task is awaited once.";

} // namespace coil::detail
