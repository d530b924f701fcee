#pragma once

#include <coil/compose/child_group.hpp>
#include <coil/compose/children.hpp>
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

namespace detail {

/// In a tuple or a variant of results.
template <class T>
using in_tuple = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// In a vector of results.
template <class T>
using in_vector =
    std::conditional_t<std::is_lvalue_reference_v<T>,
                       std::reference_wrapper<std::remove_reference_t<T>>, in_tuple<T>>;

template <class Child>
in_tuple<typename Child::result_type> take_from(Child& child) {
    if constexpr (std::is_void_v<typename Child::result_type>) {
        child.take();
        return {};
    } else {
        return child.take();
    }
}

/// What when_all and when_any have in common: children that are started together and end before the
/// await does.
template <class Children>
class joined_children : nested_await {
public:
    template <class Awaitables>
    joined_children(child_group::decided_by what, Awaitables& awaitables)
        : group_(what), children_(group_, awaitables) {}

    [[nodiscard]] static bool await_ready() noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        group_.begin(waiter, stop_token_of(waiter), *this);
        children_.start();
        return group_.must_wait();
    }

    /// When they have ended: whether await_resume() throws.
    [[nodiscard]] bool has_failed() const noexcept { return group_.has_failed(); }
    /// Instead of await_resume(): nobody wants the result.
    void discard() noexcept {
        group_.resumed();
        group_.report_error();
    }

protected:
    ~joined_children() = default;

    promise_base* next_below() noexcept final { return children_.below(); }
    void destroy_below(promise_base& child) noexcept final { children_.destroy_frame(child); }

    child_group group_;
    Children children_; // which go first
};

template <class... Kept>
class when_all_pack : public joined_children<child_pack<Kept...>> {
public:
    explicit when_all_pack(std::tuple<Kept...>& awaitables) noexcept
        : joined_children<child_pack<Kept...>>(child_group::decided_by::first_error, awaitables) {}

    std::tuple<in_tuple<stored_result<Kept&&>>...> await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        return take(std::index_sequence_for<Kept...>{});
    }

private:
    template <std::size_t... I>
    std::tuple<in_tuple<stored_result<Kept&&>>...> take(std::index_sequence<I...>) {
        return {take_from(this->children_.template get<I>())...};
    }
};

template <class Kept>
class when_all_range : public joined_children<child_array<Kept>> {
    using result_type = stored_result<Kept&&>;

public:
    template <class Awaitables>
    explicit when_all_range(Awaitables& awaitables)
        : joined_children<child_array<Kept>>(child_group::decided_by::first_error, awaitables) {}

    auto await_resume() {
        this->group_.resumed();
        this->group_.rethrow();
        if constexpr (!std::is_void_v<result_type>) {
            std::vector<in_vector<result_type>> results;
            results.reserve(this->children_.size());
            for (auto& child : this->children_) {
                results.push_back(child.take());
            }
            return results;
        }
    }
};

} // namespace detail

/// What when_all(a, b, ...) gives: see there.
template <class... Kept>
class [[nodiscard("did you forget to co_await?")]] when_all_awaitable {
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

/// What when_all(range) gives: see there.
template <class Kept, class Awaitables>
class [[nodiscard("did you forget to co_await?")]] when_all_range_awaitable {
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

/// Awaits all of them at the same time: tasks, operations and chains, sleeps, next() of streams,
/// join handles, other combinations, whatever co_await takes. Gives their results as a std::tuple,
/// in which a std::monostate stands for void:
///
///     auto [user, orders, n] = co_await when_all(load(id), find_orders(id), io::read(fd, buf));
///
/// An exception of one asks all the others to stop; when they have ended, it comes out. Of further
/// exceptions, those that only say that a child was cancelled (std::errc::operation_canceled) are
/// dropped, and the others go to the context's on_unhandled_exception. An operation's −errno is a
/// value like any other and stops nobody.
///
/// Each child has a stop token of its own, which a stop request of the awaiting task reaches, too.
/// A join_handle's task is asked to stop as well. Whatever happens, nothing of the children is left
/// when the await returns or its frame is destroyed (but for the task of a join_handle, which a
/// destroyed frame does not wait for); a result that nobody gets is given up as if it
/// had never been received: descriptors are closed, what came by a stream stays in it, what belongs
/// to a named eager operation or join_handle stays there.
///
/// Temporaries are moved into the await, named objects are referred to; nothing is allocated. Tasks
/// start in a later turn of the loop, in their order, everything else at once. Children stay on the
/// context of the awaiting
/// task: resume_on() inside of one throws std::logic_error.
template <class... Awaitables>
    requires(awaitable<detail::kept<Awaitables>> && ...)
auto when_all(Awaitables&&... awaitables) {
    static_assert(
        (detail::can_be_kept<Awaitables> && ...),
        "what cannot be moved is given by its name: auto x = eager(op); when_all(x, ...)");
    using kept_tuple = std::tuple<detail::kept<Awaitables>...>;
    return when_all_awaitable<detail::kept<Awaitables>...>(
        kept_tuple(std::forward<Awaitables>(awaitables)...));
}

/// The same for any number of awaitables of one type: gives their results as a std::vector, in
/// their order (of references, std::reference_wrapper), or nothing when they give none. The
/// elements of a container that is given by name, or through a view like std::span, are referred
/// to: join handles, say. Tasks are moved: `when_all(std::move(tasks))`. Takes one allocation for
/// all children.
///
///     std::vector<task<int>> parts;
///     ...
///     const std::vector<int> counts = co_await when_all(std::move(parts));
template <detail::range_of_awaitables Range>
auto when_all(Range&& range) {
    auto kept = detail::keep_elements(std::forward<Range>(range));
    return when_all_range_awaitable<detail::kept_element<Range>, decltype(kept)>(std::move(kept));
}

/// Only for the sentence that the compiler says.
template <class... Args>
    requires(!detail::are_children<Args...>)
void when_all(Args&&...) {
    (detail::explain_child<Args>(), ...);
}

} // namespace coil
