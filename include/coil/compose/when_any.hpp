#pragma once

#include <coil/compose/when_all.hpp>

#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coil {

/// The result of when_any(a, b, ...): the index, from 0, and the result of the child that ended
/// first. std::monostate stands for void, std::reference_wrapper for a reference.
template <class... Ts>
struct when_any_result {
    std::size_t index;
    std::variant<Ts...> value;
};

/// The result of when_any(range).
template <class T>
struct when_any_element {
    std::size_t index;
    T value;
};

namespace detail {

template <class... Kept>
class when_any_pack final : public joined_children<child_pack<Kept...>> {
    using result = when_any_result<in_vector<stored_result<Kept&&>>...>;

public:
    explicit when_any_pack(std::tuple<Kept...>& awaitables) noexcept
        : joined_children<child_pack<Kept...>>(child_group::decided_by::first_end, awaitables) {}

    result await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        return take<0>();
    }

private:
    template <std::size_t I>
    result take() {
        if constexpr (I + 1 < sizeof...(Kept)) {
            if (&this->children_.template get<I>() != this->group_.winner()) {
                return take<I + 1>();
            }
        }
        using value = decltype(result::value);
        return {I, value(std::in_place_index<I>, take_from(this->children_.template get<I>()))};
    }
};

template <class Kept>
class when_any_range final : public joined_children<child_array<Kept>> {
public:
    template <class Awaitables>
    explicit when_any_range(Awaitables& awaitables)
        : joined_children<child_array<Kept>>(child_group::decided_by::first_end, awaitables) {}

    [[nodiscard]] bool has_failed() const noexcept {
        return this->group_.has_failed() || this->group_.winner() == nullptr;
    }

    when_any_element<in_vector<stored_result<Kept&&>>> await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        for (std::size_t i = 0; i < this->children_.size(); ++i) {
            if (auto& child = this->children_.begin()[i]; &child == this->group_.winner()) {
                return {i, take_from(child)};
            }
        }
        throw std::invalid_argument("coil: when_any() of an empty range would wait forever");
    }
};

} // namespace detail

/// The awaitable returned by when_any(a, b, ...).
template <class... Kept>
class [[nodiscard("did you forget to co_await?")]] when_any_awaitable {
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
class [[nodiscard("did you forget to co_await?")]] when_any_range_awaitable {
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

/// Awaits several awaitables concurrently until one has ended, asks the others to stop, waits until
/// they have ended too, and returns the first one's index and result.
///
///     const auto first = co_await when_any(peer.recv(buf), timeout(3s));
///     if (first.index == 0)
///         use(std::get<0>(first.value));
///
/// If the awaiting task is asked to stop, the first child to react wins with -ECANCELED. That is
/// often the timeout, which returns 0 only after its time has passed.
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

} // namespace coil
