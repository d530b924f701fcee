#pragma once

#include <coil/compose/detail/children.hpp>
#include <coil/compose/detail/when_all_awaiter.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace coil {

template <class... Kept>
class when_all_awaitable;
template <class Kept, class Awaitables>
class when_all_range_awaitable;

/// Awaits several awaitables concurrently: tasks, operations and chains, sleeps, next() of streams,
/// join handles, other combinators. Returns their results as a std::tuple, in which std::monostate
/// stands for void.
///
///     auto [user, orders, n] = co_await when_all(load(id), find_orders(id), io::read(fd, buf));
///
/// The first exception asks all other children to stop, and is rethrown when they have ended.
/// Further exceptions go to the context's on_unhandled_exception, except those that only say that a
/// child was cancelled (std::errc::operation_canceled). An operation's -errno is an ordinary value
/// and stops no other child.
///
/// Each child has its own stop token. A stop request of the awaiting task reaches all of them, and
/// also the task of a join_handle. No child is left when the await returns or its frame is
/// destroyed, except that a destroyed frame does not wait for the task of a join_handle. A result
/// that cannot be returned is discarded safely: descriptors are closed, stream elements stay in the
/// stream, and the result of a named eager operation or join_handle stays there.
///
/// Temporaries are moved into the await, named objects are held by reference; nothing is allocated.
/// Tasks start in a later iteration of the loop, in argument order; everything else starts
/// immediately. Children stay on the context of the awaiting task: resume_on() in a child throws
/// std::logic_error.
template <class... Awaitables>
    requires((awaitable<detail::kept<Awaitables>> && detail::can_be_kept<Awaitables>) && ...)
auto when_all(Awaitables&&... awaitables) {
    using kept_tuple = std::tuple<detail::kept<Awaitables>...>;
    return when_all_awaitable<detail::kept<Awaitables>...>(
        kept_tuple(std::forward<Awaitables>(awaitables)...));
}

#if defined(COIL_CHECK_LIFETIMES)
/// The same for tasks. They are passed by value, so that the compiler can check lifetimes.
template <class... T>
    requires(sizeof...(T) > 0)
COIL_CORO_COPIES auto when_all(task<T>... tasks COIL_LIFETIMEBOUND) {
    return when_all_awaitable<task<T>...>(std::tuple<task<T>...>(std::move(tasks)...));
}
template <class... Kept>
inline constexpr bool detail::checked_by_value<when_all_awaitable<Kept...>> = true;
#endif

/// The same for any number of awaitables of one type. Returns their results as a std::vector in the
/// same order (std::reference_wrapper for references), or void if they have none. Elements of a
/// named container, or of a view such as std::span, are held by reference: join handles, for
/// example. Tasks are moved: `when_all(std::move(tasks))`. One allocation for all children.
///
///     std::vector<task<int>> parts;
///     ...
///     const std::vector<int> counts = co_await when_all(std::move(parts));
template <detail::range_of_awaitables Range>
auto when_all(Range&& range) {
    auto kept = detail::keep_elements(std::forward<Range>(range));
    return when_all_range_awaitable<detail::kept_element<Range>, decltype(kept)>(std::move(kept));
}

/// Produce readable compiler errors.
template <class... Args>
    requires(awaitable<detail::kept<Args>> && ...) && (!(detail::can_be_kept<Args> && ...))
void when_all(Args&&...)
    COIL_DELETE("an awaitable that cannot be moved is passed by name: auto x = eager(op); "
                "when_all(x, ...)");
template <class A>
void when_all(std::initializer_list<A>)
    COIL_DELETE("write the awaitables without braces: when_all(f(), g())");
template <class... Args>
    requires(!detail::are_children<Args...>)
void when_all(Args&&...) COIL_EXPLAIN_CHILDREN(Args...) {
    (detail::explain_child<Args>(), ...);
}

/// The awaitable returned by when_all(a, b, ...).
template <class... Kept>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED when_all_awaitable
    : public detail::not_its_result<when_all_awaitable<Kept...>> {
public:
    explicit when_all_awaitable(std::tuple<Kept...>&& awaitables)
        : awaitables_(std::move(awaitables)) {}

    [[nodiscard]] detail::when_all_pack<Kept...> operator co_await() && noexcept {
        return detail::when_all_pack<Kept...>(awaitables_);
    }
    template <class Self = void>
    detail::when_all_pack<Kept...> operator co_await() & noexcept {
        static_assert(detail::always_false<Self>, "when_all(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::when_all_pack<Kept...>(awaitables_);
    }

private:
    std::tuple<Kept...> awaitables_;
};

/// Produces a readable compiler error: `auto [a, b] = when_all(f(), g())` without co_await.
template <std::size_t I, class... Kept>
int get(const when_all_awaitable<Kept...>&)
    COIL_DELETE("did you forget to co_await? Write auto [a, b] = co_await when_all(f(), g())");

/// The awaitable returned by when_all(range).
template <class Kept, class Awaitables>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED when_all_range_awaitable {
public:
    explicit when_all_range_awaitable(Awaitables&& awaitables) noexcept
        : awaitables_(std::move(awaitables)) {}

    [[nodiscard]] detail::when_all_range<Kept> operator co_await() && {
        return detail::when_all_range<Kept>(awaitables_);
    }
    template <class Self = void>
    detail::when_all_range<Kept> operator co_await() & {
        static_assert(detail::always_false<Self>, "when_all(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::when_all_range<Kept>(awaitables_);
    }

private:
    Awaitables awaitables_;
};

} // namespace coil

template <class... Kept>
struct std::tuple_size<coil::when_all_awaitable<Kept...>>
    : std::integral_constant<std::size_t, sizeof...(Kept)> {};
template <std::size_t I, class... Kept>
struct std::tuple_element<I, coil::when_all_awaitable<Kept...>> {
    using type = int;
};
