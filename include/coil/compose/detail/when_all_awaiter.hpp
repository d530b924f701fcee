#pragma once

#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/detail/children.hpp>
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

namespace coil::detail {

/// The type that stands for T in a tuple or variant of results.
template <class T>
using in_tuple = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// The type that stands for T in a vector of results.
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

/// Common part of when_all and when_any: children that start together and end before the await
/// does.
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

    /// Called when all have ended. Returns whether await_resume() will throw.
    [[nodiscard]] bool has_failed() const noexcept { return group_.has_failed(); }
    /// Called instead of await_resume() if the result is not needed.
    void discard() noexcept {
        group_.resumed();
        group_.report_error();
    }

protected:
    ~joined_children() = default;

    promise_base* next_below() noexcept final { return children_.below(); }
    void destroy_below(promise_base& child) noexcept final { children_.destroy_frame(child); }
    void visit_below(child_visitor& visitor) final { children_.visit(visitor); }

    child_group group_;
    Children children_; // destroyed first
};

template <class... Kept>
class when_all_pack final : public joined_children<child_pack<Kept...>> {
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
class when_all_range final : public joined_children<child_array<Kept>> {
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

} // namespace coil::detail
