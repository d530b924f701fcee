#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// What `co_await a` works with: what operator co_await gives, or the awaitable itself.
template <class A>
decltype(auto) get_awaiter(A&& a) {
    if constexpr (requires { std::forward<A>(a).operator co_await(); }) {
        return std::forward<A>(a).operator co_await();
    } else if constexpr (requires { operator co_await(std::forward<A>(a)); }) {
        return operator co_await(std::forward<A>(a));
    } else {
        return std::forward<A>(a);
    }
}

template <class A>
using awaiter_of = decltype(get_awaiter(std::declval<A>()));

} // namespace detail

/// What co_await takes: A as a value category, so that `awaitable<T&>` says that a T may be awaited
/// by its name.
template <class A>
concept awaitable = requires(detail::awaiter_of<A> awaiter) {
    awaiter.await_ready();
    awaiter.await_resume();
};

/// What `co_await std::declval<A>()` gives.
template <awaitable A>
using await_result_t = decltype(std::declval<detail::awaiter_of<A>&>().await_resume());

namespace detail {

/// How what was given to a combinator is kept: a temporary by value, a named object by reference.
template <class A>
using kept = std::conditional_t<std::is_lvalue_reference_v<A>, A, std::remove_cvref_t<A>>;

/// Whether it can be kept so.
template <class A>
inline constexpr bool can_be_kept = std::is_constructible_v<kept<A>, A>;

/// Whether an awaiter says, when it is over, if it has a result or an exception. Combinators do,
/// and what waits for a mutex, a channel and the like. What it says holds from then on, whatever
/// happens before it is asked for the result.
template <class Awaiter>
concept knows_failure = requires(Awaiter& a) {
    { a.has_failed() } noexcept -> std::same_as<bool>;
};

/// Whether a combinator may leave the result in the awaiter until somebody wants it: nobody has to
/// ask for it in order to see whether it is an exception. One that is never asked gives up what it
/// carries by itself, in its destructor or in `discard()`: so every await of ring work is one, or
/// descriptors would leak (guarantee G4).
template <class Awaiter>
concept asked_late = knows_failure<Awaiter> || requires(Awaiter& a) {
    { a.await_resume() } noexcept;
};

/// What of an await's result is kept for later: a value, a reference to a named object, or nothing.
template <awaitable A>
using stored_result = std::conditional_t<std::is_lvalue_reference_v<await_result_t<A>>,
                                         await_result_t<A>, std::remove_cvref_t<await_result_t<A>>>;

} // namespace detail

} // namespace coil
