#pragma once

#include <coil/base/std_construct.hpp>
#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/detail/explain_child.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::detail {

/// The children of a pack, whose awaitables may have different types. They are destroyed last to
/// first, like locals, so that stream elements that they return to one queue keep their order.
template <class... Kept>
class child_pack;

template <>
class child_pack<> {
public:
    template <class Awaitables>
    child_pack(child_group&, Awaitables&) noexcept {}
    void start() const noexcept {}
    [[nodiscard]] promise_base* below() const noexcept { return nullptr; }
    void destroy_frame(promise_base&) const noexcept {}
    void visit(child_visitor&) const noexcept {}
};

template <class First, class... Rest>
class child_pack<First, Rest...> {
public:
    template <class... All>
    child_pack(child_group& group, std::tuple<All...>& awaitables) noexcept
        : first_(group, std::get<sizeof...(All) - sizeof...(Rest) - 1>(awaitables)),
          rest_(group, awaitables) {}

    void start() noexcept {
        first_.start();
        rest_.start();
    }

    /// The promise of the last child that owns coroutines, or null.
    [[nodiscard]] promise_base* below() noexcept {
        promise_base* const last = rest_.below();
        return last != nullptr ? last : first_.below();
    }
    void destroy_frame(promise_base& promise) noexcept {
        if (first_.below() == &promise) {
            first_.destroy_frame();
        } else {
            rest_.destroy_frame(promise);
        }
    }
    void visit(child_visitor& visitor) {
        first_.visit(visitor);
        rest_.visit(visitor);
    }

    template <std::size_t I>
    [[nodiscard]] auto& get() noexcept {
        if constexpr (I == 0) {
            return first_;
        } else {
            return rest_.template get<I - 1>();
        }
    }

private:
    child<First> first_;
    [[no_unique_address]] child_pack<Rest...> rest_;
};

/// The children of a range: any number of one type, in one allocation.
template <class Kept>
class child_array {
    using child_t = child<Kept>;
    using allocator = std::allocator<child_t>;

public:
    template <class Awaitables>
    child_array(child_group& group, Awaitables& awaitables)
        : children_(allocator().allocate(awaitables.size())) {
        for (auto& each : awaitables) {
            std::construct_at(children_ + size_, group, refer(each));
            ++size_;
        }
        in_use_ = size_;
    }
    child_array(const child_array&) = delete;
    child_array& operator=(const child_array&) = delete;
    ~child_array() {
        while (in_use_ > 0) {
            destroy_last();
        }
        allocator().deallocate(children_, size_);
    }

    /// The promise of the last child that owns coroutines, or null. The children after that one are
    /// destroyed by this call, so that the order of destruction is the same as in a pack.
    [[nodiscard]] promise_base* below() noexcept {
        for (; in_use_ > 0; destroy_last()) {
            if (promise_base* const promise = children_[in_use_ - 1].below()) {
                return promise;
            }
        }
        return nullptr;
    }
    void destroy_frame(promise_base&) noexcept { destroy_last(); }
    void visit(child_visitor& visitor) {
        for (std::size_t i = 0; i < in_use_ && !visitor.is_full(); ++i) {
            children_[i].visit(visitor);
        }
    }

    void start() noexcept {
        for (child_t& each : *this) {
            each.start();
        }
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] child_t* begin() noexcept { return children_; }
    [[nodiscard]] child_t* end() noexcept { return children_ + size_; }

private:
    template <class Each>
    static std::remove_reference_t<Kept>& refer(Each& each) noexcept {
        if constexpr (std::is_lvalue_reference_v<Kept>) {
            return *each; // a named object
        } else {
            return each;
        }
    }

    void destroy_last() noexcept { std::destroy_at(children_ + --in_use_); }

    child_t* children_;
    std::size_t size_ = 0;
    std::size_t in_use_ = 0; // all of them, until their destruction begins
};

/// Whether the elements outlive the argument: it is an lvalue, or a view that does not own them.
template <class Range>
inline constexpr bool leaves_elements =
    std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range> ||
    (std::ranges::view<std::remove_cv_t<Range>> &&
     // a view is copied in O(1) or not at all, so if it is copyable it does not own its elements
     std::copyable<std::remove_cv_t<Range>>);

/// How the elements of a range are stored: by reference if they outlive the argument, otherwise by
/// value.
template <class Range>
using kept_element =
    std::conditional_t<leaves_elements<Range> &&
                           std::is_lvalue_reference_v<std::ranges::range_reference_t<Range>>,
                       std::ranges::range_reference_t<Range>,
                       std::remove_cvref_t<std::ranges::range_reference_t<Range>>>;

template <class T>
concept range_of_awaitables =
    std::ranges::input_range<T> && !awaitable<T> && awaitable<kept_element<T>>;

/// The awaitables of a range, or the addresses of named ones.
template <class Range>
auto keep_elements(Range&& range) {
    using kept_t = kept_element<Range>;
    if constexpr (std::is_lvalue_reference_v<kept_t>) {
        std::vector<std::remove_reference_t<kept_t>*> addresses;
        for (auto&& each : range) {
            addresses.push_back(std::addressof(each));
        }
        return addresses;
    } else if constexpr (std::same_as<Range, std::vector<kept_t>>) {
        return std::vector<kept_t>(std::move(range));
    } else {
        std::vector<kept_t> values;
        for (auto&& each : range) {
            if constexpr (std::is_lvalue_reference_v<Range>) { // a view that generates its elements
                values.push_back(std::forward<decltype(each)>(each));
            } else {
                values.push_back(std::move(each));
            }
        }
        return values;
    }
}

template <class... Args>
inline constexpr bool are_children = (awaitable<kept<Args>> && ...);
template <class Arg>
inline constexpr bool are_children<Arg> = awaitable<kept<Arg>> || range_of_awaitables<Arg>;

} // namespace coil::detail
