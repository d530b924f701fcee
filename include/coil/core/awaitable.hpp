#pragma once

#include <coil/core/config.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// The awaiter of `co_await a`: the result of operator co_await, or the awaitable itself.
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

/// Whether co_await accepts an A. The value category matters: `awaitable<T&>` means that an lvalue
/// of type T can be awaited.
template <class A>
concept awaitable = requires(detail::awaiter_of<A> awaiter) {
    awaiter.await_ready();
    awaiter.await_resume();
};

/// The type of `co_await std::declval<A>()`.
template <awaitable A>
using await_result_t = decltype(std::declval<detail::awaiter_of<A>&>().await_resume());

namespace detail {

/// The type in which a combinator stores a temporary of type A. Specialised for types that are
/// valid only in the expression that creates them.
template <class A>
struct kept_as {
    using type = A;
};

/// How a combinator stores an argument: a temporary by value, a named object by reference.
template <class A>
using kept = std::conditional_t<std::is_lvalue_reference_v<A>, A,
                                typename kept_as<std::remove_cvref_t<A>>::type>;

/// With COIL_CHECK_LIFETIMES: whether functions take an A by value. Only then can the compiler
/// check the lifetimes of the objects to which the tasks or operations in it refer.
template <class A>
inline constexpr bool checked_by_value = false;

/// Whether an argument can be stored as kept<A>.
template <class A>
inline constexpr bool can_be_kept = std::is_constructible_v<kept<A>, A>;

/// Whether a finished awaiter can tell if it holds a result or an exception, as combinators and the
/// awaiters of sync/ can. The answer does not change until the result is retrieved.
template <class Awaiter>
concept knows_failure = requires(Awaiter& a) {
    { a.has_failed() } noexcept -> std::same_as<bool>;
};

/// Whether a combinator may leave the result in the awaiter until it is wanted, because the result
/// need not be retrieved to see whether it is an exception. An awaiter whose result is never
/// retrieved releases it in its destructor or in `discard()`. Every awaiter of an operation does
/// so; otherwise descriptors would leak (guarantee G4).
template <class Awaiter>
concept deferred_result = knows_failure<Awaiter> || requires(Awaiter& a) {
    { a.await_resume() } noexcept;
};

/// How the result of an await is stored: as a reference if the await returns an lvalue reference,
/// otherwise as a value. void if there is no result.
template <awaitable A>
using stored_result = std::conditional_t<std::is_lvalue_reference_v<await_result_t<A>>,
                                         await_result_t<A>, std::remove_cvref_t<await_result_t<A>>>;

/// Whether R is the type of the element in an A, such as a std::optional<R>.
template <class R, class A>
concept element_of = std::same_as<R, typename std::remove_cvref_t<A>::value_type>;

/// The types to which a program that forgot co_await may convert an awaitable: that of the result
/// or of the element in it, int if the result converts to it, and bool.
template <class R, class A>
concept mistaken_result =
    std::same_as<R, bool> ||
    (awaitable<A> && (std::same_as<R, await_result_t<A>> || element_of<R, await_result_t<A>> ||
                      (std::same_as<R, int> && std::is_convertible_v<await_result_t<A>, int>)));

/// A base class of the awaitable A: a conversion of A to its result does not compile, and the
/// compiler says why.
template <class A>
struct not_its_result {
    template <mistaken_result<A> R>
    operator R() const // NOLINT(*-explicit-*)
        COIL_DELETE_CONVERSION("did you forget to co_await? Only that gives the result");
    void operator*() const
        COIL_DELETE_COPY("did you forget to co_await? Only that gives the result");
    void* operator->() const
        COIL_DELETE_COPY("did you forget to co_await? Only that gives the result");
};

} // namespace detail

} // namespace coil
