#pragma once

#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/promise.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil {

template <class T>
class task;

} // namespace coil

namespace coil::detail {

template <class T>
inline constexpr bool always_false = false;

/// The type as which a program uses a task<T> that it forgot to await: the type of the result.
template <class T>
using mistaken_for =
    std::conditional_t<std::is_void_v<T>, bool,
                       std::conditional_t<std::is_same_v<T, io_result>, int, std::remove_cv_t<T>>>;

/// Whether a T made from a U refers to an object that is about to be destroyed. A U that is not an
/// lvalue reference is a temporary or a local of the coroutine.
template <class T, class U>
inline constexpr bool dangles =
    !std::is_lvalue_reference_v<U> &&
    (std::is_lvalue_reference_v<T> ||
     (std::ranges::borrowed_range<std::remove_cv_t<T>> && std::ranges::range<U> &&
      !std::ranges::borrowed_range<std::remove_cv_t<U>>));

template <class T>
class task_promise final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept { return final_awaiter(*this); }
    void unhandled_exception() noexcept { outcome.set_error(std::current_exception()); }

    template <class U = T>
        requires(!dangles<T, U> &&
                 (std::is_convertible_v<U &&, T> ||
                  (std::same_as<T, io_result> && std::is_convertible_v<U &&, int>)))
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
        outcome.set_value(std::forward<U>(value));
    }

    /// Produces a readable compiler error.
    template <class U>
        requires dangles<T, U>
    void return_value(U&&)
        COIL_DELETE("the result would refer to a local variable or a temporary, which ends with "
                    "the coroutine: return a value, for example task<std::string>");

    result<T> outcome;
};

template <>
class task_promise<void> final : public promise_base {
public:
    inline task<void> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept { return final_awaiter(*this); }
    void unhandled_exception() noexcept { outcome.set_error(std::current_exception()); }
    void return_void() const noexcept {}

    result<void> outcome;
};

inline constexpr const char* empty_task = "this task was spawned or moved from before.";
inline constexpr const char* used_task = "this task was awaited before: a task is awaited once.";

} // namespace coil::detail
