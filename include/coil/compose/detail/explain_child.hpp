#pragma once

#include <coil/core/async_generator.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <cstdlib>
#include <type_traits>

namespace coil::detail {

template <class T>
inline constexpr bool is_async_generator = false;
template <class T>
inline constexpr bool is_async_generator<async_generator<T>> = true;

/// Why an argument cannot be a child of when_all, when_any or a scope.
enum class child_mistake { none, generator, function, range, elements, not_awaitable };

template <class A>
inline constexpr child_mistake mistake_of_child = [] {
    using T = std::remove_cvref_t<A>;
    if constexpr (awaitable<kept<A>>) {
        return child_mistake::none; // another overload is meant
    } else if constexpr (is_async_generator<T>) {
        return child_mistake::generator;
    } else if constexpr (std::invocable<A> || std::is_function_v<std::remove_pointer_t<T>>) {
        return child_mistake::function;
    } else if constexpr (std::ranges::range<T>) {
        using element = std::ranges::range_value_t<T>;
        return awaitable<element&&> ? child_mistake::range : child_mistake::elements;
    } else {
        return child_mistake::not_awaitable;
    }
}();

template <class... Args>
inline constexpr bool a_generator = ((mistake_of_child<Args> == child_mistake::generator) || ...);
template <class... Args>
inline constexpr bool a_function = ((mistake_of_child<Args> == child_mistake::function) || ...);
template <class... Args>
inline constexpr bool a_range = ((mistake_of_child<Args> == child_mistake::range) || ...);
template <class... Args>
inline constexpr bool wrong_elements = ((mistake_of_child<Args> == child_mistake::elements) || ...);
template <class... Args>
inline constexpr bool no_awaitable =
    ((mistake_of_child<Args> == child_mistake::not_awaitable) || ...);

#define COIL_CHILD_GENERATOR "an async_generator cannot be awaited: pass g.next()"
#define COIL_CHILD_FUNCTION                                                                        \
    "this is a function, not an awaitable: call it, f(); a lambda with captures must outlive the " \
    "task, so turn its captures into parameters first"
#define COIL_CHILD_RANGE                                                                           \
    "a range of awaitables must be the only argument of when_all or when_any; beside other "       \
    "arguments, wrap it in a when_all of its own"
#define COIL_CHILD_ELEMENTS                                                                        \
    "the elements of this range cannot be awaited; functions must be called first: f()"
#define COIL_CHILD_NOT_AWAITABLE "this cannot be awaited"

/// Placed after the parameters of an overload that refuses such arguments.
#define COIL_EXPLAIN_CHILDREN(...)                                                                 \
    COIL_ERROR_IF((::coil::detail::a_generator<__VA_ARGS__>), COIL_CHILD_GENERATOR)                \
    COIL_ERROR_IF((::coil::detail::a_function<__VA_ARGS__>), COIL_CHILD_FUNCTION)                  \
    COIL_ERROR_IF((::coil::detail::a_range<__VA_ARGS__>), COIL_CHILD_RANGE)                        \
    COIL_ERROR_IF((::coil::detail::wrong_elements<__VA_ARGS__>), COIL_CHILD_ELEMENTS)              \
    COIL_ERROR_IF((::coil::detail::no_awaitable<__VA_ARGS__>), COIL_CHILD_NOT_AWAITABLE)

/// The body of such an overload, for compilers without COIL_ERROR_IF.
template <class A>
[[noreturn]] void explain_child() noexcept {
    constexpr child_mistake mistake = mistake_of_child<A>;
    static_assert(mistake != child_mistake::generator, COIL_CHILD_GENERATOR);
    static_assert(mistake != child_mistake::function, COIL_CHILD_FUNCTION);
    static_assert(mistake != child_mistake::range, COIL_CHILD_RANGE);
    static_assert(mistake != child_mistake::elements, COIL_CHILD_ELEMENTS);
    static_assert(mistake != child_mistake::not_awaitable, COIL_CHILD_NOT_AWAITABLE);
    std::abort(); // not reached: one of the assertions has failed
}

} // namespace coil::detail
