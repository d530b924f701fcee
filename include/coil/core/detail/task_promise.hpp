#pragma once

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
class task_promise final : public promise_base {
public:
    task<T> get_return_object() noexcept;
    [[nodiscard]] final_awaiter final_suspend() noexcept { return final_awaiter(*this); }
    void unhandled_exception() noexcept { outcome.set_error(std::current_exception()); }

    template <class U = T>
        requires std::is_convertible_v<U&&, T> ||
                 (std::same_as<T, io_result> && std::is_convertible_v<U &&, int>)
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
        outcome.set_value(std::forward<U>(value));
    }

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

template <class T>
inline constexpr bool always_false = false;

inline constexpr const char* empty_task = "this task was spawned or moved from before.";
inline constexpr const char* used_task = "this task was awaited before: a task is awaited once.";

} // namespace coil::detail
