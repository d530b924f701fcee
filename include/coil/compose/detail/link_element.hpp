#pragma once

#include <coil/compose/detail/timed_element.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/modifiers.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace coil::detail {

/// A chain of elements, which are submitted together and executed by the kernel one after the other
/// (guarantee G13).
template <element... Elements>
class chain_element {
    static_assert(sizeof...(Elements) >= 2);
    using elements = std::tuple<Elements...>;
    using last_element = std::tuple_element_t<sizeof...(Elements) - 1, elements>;

public:
    static constexpr std::uint16_t entries = (0 + ... + Elements::entries);
    static constexpr bool needs_result = (false || ... || Elements::needs_result);
    static constexpr bool has_link_timeout = (false || ... || detail::has_link_timeout<Elements>);
    // The last result is always reported; the others only if every entry posts a CQE of its own.
    static constexpr bool needs_every_result = []<std::size_t... I>(std::index_sequence<I...>) {
        return (false || ... ||
                (std::tuple_element_t<I, elements>::needs_result ||
                 std::tuple_element_t<I, elements>::entries > 1)) ||
               last_element::entries > 1;
    }(std::make_index_sequence<sizeof...(Elements) - 1>{});

    explicit chain_element(elements&& e) noexcept : elements_(std::move(e)) {}

    sqe_slot& arm() noexcept {
        sqe_slot* first = nullptr;
        sqe_slot* last = nullptr;
        std::apply([&](Elements&... each) noexcept { (append(each.arm(), first, last), ...); },
                   elements_);
        return *first;
    }

    auto result() noexcept {
        drop_all_but_last(std::make_index_sequence<sizeof...(Elements) - 1>{});
        return std::get<sizeof...(Elements) - 1>(elements_).result();
    }

    void drop() noexcept {
        std::apply([](Elements&... each) noexcept { (each.drop(), ...); }, elements_);
    }

    /// Called if this chain is in the middle of a longer one.
    void discard_mid_chain() noexcept {
        std::apply([](Elements&... each) noexcept { (detail::discard_mid_chain(each), ...); },
                   elements_);
    }

    [[nodiscard]] elements&& take() && noexcept { return std::move(elements_); }

    /// A chain of wrapped elements, see wrapped().
    template <template <class> class Wrapper>
    [[nodiscard]] auto wrap() && noexcept {
        return std::apply(
            [](Elements&... each) noexcept {
                using chain = chain_element<decltype(wrapped<Wrapper>(std::move(each)))...>;
                return chain(std::tuple(wrapped<Wrapper>(std::move(each))...));
            },
            elements_);
    }

private:
    /// Appends the entries of an element after `last`, and links `last` to them.
    static void append(sqe_slot& head, sqe_slot*& first, sqe_slot*& last) noexcept {
        if (last == nullptr) {
            first = &head;
        } else {
            // Entries that are linked already (hard_link) keep their flags.
            link_to_next(*last);
            last->set_next(&head);
        }
        last = &head;
        while (last->next() != nullptr) {
            last = last->next();
        }
    }

    template <std::size_t... I>
    void drop_all_but_last(std::index_sequence<I...>) noexcept {
        (detail::discard_mid_chain(std::get<I>(elements_)), ...);
    }

    elements elements_;
};

template <class T>
inline constexpr bool is_chain = false;
template <class... E>
inline constexpr bool is_chain<chain_element<E...>> = true;

/// Whether an operation is a chain with a limit; the kernel can limit only single operations.
template <class Op>
inline constexpr bool limits_chain = [] {
    using element = typename std::remove_cvref_t<Op>::element_type;
    return is_timed<element> && element::entries > 1;
}();

/// Whether an operation other than the last is a chain.
template <class First, class... Rest>
inline constexpr bool chain_before_last = false;
template <class First, class Second, class... Rest>
inline constexpr bool chain_before_last<First, Second, Rest...> =
    is_chain<typename std::remove_cvref_t<First>::element_type> ||
    chain_before_last<Second, Rest...>;

/// A tuple of the elements that represent `e` inside a chain.
template <class Element>
auto linkable(Element&& e) noexcept {
    using E = std::remove_cvref_t<Element>;
    static_assert(!is_drained<E>, "io::drain() is for single operations: the kernel has "
                                  "no barrier inside a chain");
    if constexpr (is_chain<E>) {
        return std::forward<Element>(e).take();
    } else if constexpr (is_timed<E>) {
        return std::tuple(kernel_timed_element(std::forward<Element>(e)));
    } else {
        return std::tuple<E>(std::forward<Element>(e));
    }
}

template <class... E>
auto make_chain(std::tuple<E...>&& elements) noexcept {
    return io_awaitable<chain_element<E...>>(chain_element<E...>(std::move(elements)));
}

/// An element whose failure does not end the chain.
template <element Element>
class hard_element : public Element {
public:
    // A failure in the middle posts its own CQE, although the chain continues.
    static constexpr bool needs_result = true;

    explicit hard_element(Element&& e) noexcept : Element(std::move(e)) {}

    sqe_slot& arm() noexcept {
        sqe_slot& first = Element::arm();
        for (sqe_slot* entry = &first; entry != nullptr; entry = entry->next()) {
            entry->request.flags |= uring::sqe_flag::io_hardlink;
        }
        return first;
    }
};

/// A tuple in which all elements but the last are hard-linked.
template <class First, class... Rest>
auto hard_elements(First&& first, Rest&&... rest) noexcept {
    if constexpr (sizeof...(Rest) == 0) {
        return linkable(std::forward<First>(first));
    } else {
        auto head = linkable(std::forward<First>(first));
        static_assert(std::tuple_size_v<decltype(head)> == 1);
        return std::tuple_cat(std::tuple(hard_element(std::get<0>(std::move(head)))),
                              hard_elements(std::forward<Rest>(rest)...));
    }
}

} // namespace coil::detail
