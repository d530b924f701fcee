#pragma once

#include <coil/compose/when_all.hpp>

#include <cstddef>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coil {

/// What when_any(a, b, ...) gives: which of them ended first, counted from 0, and its result. A
/// std::monostate stands for void, a std::reference_wrapper for a reference.
template <class... Ts>
struct when_any_result {
    std::size_t index;
    std::variant<Ts...> value;
};

/// What when_any(range) gives.
template <class T>
struct when_any_element {
    std::size_t index;
    T value;
};

namespace detail {

template <class... Kept>
class when_any_pack : public joined_children<child_pack<Kept...>> {
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
            if (&this->children_.template get<I>() != this->group_.decider()) {
                return take<I + 1>();
            }
        }
        using value = decltype(result::value);
        return {I, value(std::in_place_index<I>, take_from(this->children_.template get<I>()))};
    }
};

template <class Kept>
class when_any_range : public joined_children<child_array<Kept>> {
public:
    template <class Awaitables>
    explicit when_any_range(Awaitables& awaitables)
        : joined_children<child_array<Kept>>(child_group::decided_by::first_end, awaitables) {}

    [[nodiscard]] bool has_failed() const noexcept {
        return this->group_.has_failed() || this->group_.decider() == nullptr;
    }

    when_any_element<in_vector<stored_result<Kept&&>>> await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        for (std::size_t i = 0; i < this->children_.size(); ++i) {
            if (auto& child = this->children_.begin()[i]; &child == this->group_.decider()) {
                return {i, take_from(child)};
            }
        }
        throw std::invalid_argument("coil: when_any() of an empty range would wait for ever");
    }
};

} // namespace detail

/// What when_any(a, b, ...) is before it is awaited: see there.
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

/// What when_any(range) is before it is awaited: see there.
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

/// Awaits all of them at the same time until one has ended, asks the others to stop, waits until
/// they have ended, too, and gives the first one's index and result:
///
///     const auto first = co_await when_any(peer.recv(buf), timeout(3s));
///     if (first.index == 0)
///         use(std::get<0>(first.value));
///
/// When the awaiting task is asked to stop, the first is whoever obeys first, with -ECANCELED:
/// often the timeout, which gives 0 only when its time has passed.
///
/// The first to end decides, however: an exception comes out, and an operation's −errno is its
/// result. Of the others, results are given up as if they had never been received: a descriptor is
/// closed, what came by a stream or belongs to a named eager operation or join_handle stays there.
/// Their exceptions go to the context's on_unhandled_exception, unless they only say that a child
/// was cancelled (std::errc::operation_canceled). A loser that does not look at its stop token is
/// waited for all the same; the task of a join_handle is asked to stop, too.
///
/// For the rest it is as when_all.
template <class... Awaitables>
    requires(awaitable<detail::kept<Awaitables>> && ...)
auto when_any(Awaitables&&... awaitables) {
    static_assert(sizeof...(Awaitables) > 0, "when_any() of nothing would wait for ever");
    static_assert(
        (detail::can_be_kept<Awaitables> && ...),
        "what cannot be moved is given by its name: auto x = eager(op); when_any(x, ...)");
    using kept_tuple = std::tuple<detail::kept<Awaitables>...>;
    return when_any_awaitable<detail::kept<Awaitables>...>(
        kept_tuple(std::forward<Awaitables>(awaitables)...));
}

/// The same for any number of awaitables of one type, given as to when_all: gives the index and the
/// value. An empty range throws std::invalid_argument.
///
///     auto [index, value] = co_await when_any(std::move(attempts));
template <detail::range_of_awaitables Range>
auto when_any(Range&& range) {
    auto kept = detail::keep_elements(std::forward<Range>(range));
    return when_any_range_awaitable<detail::kept_element<Range>, decltype(kept)>(std::move(kept));
}

/// Only for the sentence that the compiler says.
template <class... Args>
    requires(!detail::are_children<Args...>)
void when_any(Args&&...) {
    (detail::explain_child<Args>(), ...);
}

} // namespace coil
