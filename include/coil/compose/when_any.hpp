#pragma once

#include <coil/compose/detail/when_any_awaiter.hpp>
#include <coil/compose/when_all.hpp>
#include <coil/compose/when_any_result.hpp>

#include <cstddef>
#include <initializer_list>
#include <tuple>
#include <utility>

namespace coil {

template <class... Kept>
class when_any_awaitable;
template <class Kept, class Awaitables>
class when_any_range_awaitable;

/// Awaits several awaitables concurrently until one has ended, asks the others to stop, waits until
/// they have ended too, and returns the first one's index and result.
///
///     const auto first = co_await when_any(peer.recv(buf), timeout(3s));
///     if (first.index == 0)
///         use(std::get<0>(first.value));
///
/// If the awaiting task is asked to stop, the first child to react wins, with -ECANCELED or
/// std::errc::operation_canceled. Often that child is the timeout, so check its value, too: it is 0
/// only if the time has passed.
///
/// The first child to end decides the result, whatever it is: its exception is rethrown, its -errno
/// is returned. The results of the losers are discarded safely: a descriptor is closed, a stream's
/// element stays in the stream, and the result of a named eager operation or join_handle stays
/// there. Their exceptions go to the context's on_unhandled_exception, except those that only say
/// that a child was cancelled (std::errc::operation_canceled). A loser that ignores its stop token
/// is waited for as well. The task of a join_handle is asked to stop, too.
///
/// Everything else is as for when_all.
template <class... Awaitables>
    requires((awaitable<detail::kept<Awaitables>> && detail::can_be_kept<Awaitables>) && ...) &&
            (sizeof...(Awaitables) > 0)
auto when_any(Awaitables&&... awaitables) {
    using kept_tuple = std::tuple<detail::kept<Awaitables>...>;
    return when_any_awaitable<detail::kept<Awaitables>...>(
        kept_tuple(std::forward<Awaitables>(awaitables)...));
}

#if defined(COIL_CHECK_LIFETIMES)
/// The same for tasks. They are passed by value, so that the compiler can check lifetimes.
template <class... T>
    requires(sizeof...(T) > 0)
COIL_CORO_COPIES auto when_any(task<T>... tasks COIL_LIFETIMEBOUND) {
    return when_any_awaitable<task<T>...>(std::tuple<task<T>...>(std::move(tasks)...));
}
template <class... Kept>
inline constexpr bool detail::checked_by_value<when_any_awaitable<Kept...>> = true;
#endif

/// The same for any number of awaitables of one type, passed as to when_all. Returns the index and
/// the value. An empty range throws std::invalid_argument.
///
///     auto [index, value] = co_await when_any(std::move(attempts));
template <detail::range_of_awaitables Range>
auto when_any(Range&& range) {
    auto kept = detail::keep_elements(std::forward<Range>(range));
    return when_any_range_awaitable<detail::kept_element<Range>, decltype(kept)>(std::move(kept));
}

/// Produce readable compiler errors.
void when_any() COIL_DELETE("when_any() without arguments would wait forever");
template <class... Args>
    requires(awaitable<detail::kept<Args>> && ...) && (!(detail::can_be_kept<Args> && ...))
void when_any(Args&&...)
    COIL_DELETE("an awaitable that cannot be moved is passed by name: auto x = eager(op); "
                "when_any(x, ...)");
template <class A>
void when_any(std::initializer_list<A>)
    COIL_DELETE("write the awaitables without braces: when_any(f(), g())");
template <class... Args>
    requires(!detail::are_children<Args...>)
void when_any(Args&&...) COIL_EXPLAIN_CHILDREN(Args...) {
    (detail::explain_child<Args>(), ...);
}

/// The awaitable returned by when_any(a, b, ...).
template <class... Kept>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED when_any_awaitable {
public:
    explicit when_any_awaitable(std::tuple<Kept...>&& awaitables)
        : awaitables_(std::move(awaitables)) {}

    [[nodiscard]] detail::when_any_pack<Kept...> operator co_await() && noexcept {
        return detail::when_any_pack<Kept...>(awaitables_);
    }
    template <class Self = void>
    detail::when_any_pack<Kept...> operator co_await() & noexcept {
        static_assert(detail::always_false<Self>, "when_any(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::when_any_pack<Kept...>(awaitables_);
    }

private:
    std::tuple<Kept...> awaitables_;
};

/// The awaitable returned by when_any(range).
template <class Kept, class Awaitables>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED when_any_range_awaitable {
public:
    explicit when_any_range_awaitable(Awaitables&& awaitables) noexcept
        : awaitables_(std::move(awaitables)) {}

    [[nodiscard]] detail::when_any_range<Kept> operator co_await() && {
        return detail::when_any_range<Kept>(awaitables_);
    }
    template <class Self = void>
    detail::when_any_range<Kept> operator co_await() & {
        static_assert(detail::always_false<Self>, "when_any(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::when_any_range<Kept>(awaitables_);
    }

private:
    Awaitables awaitables_;
};

} // namespace coil
