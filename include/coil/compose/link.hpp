#pragma once

#include <coil/compose/timeout.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/eager.hpp>
#include <coil/io/modifiers.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace coil {

namespace detail {

/// Elements that the kernel runs one after the other, submitted at once as one chain (guarantee
/// G13).
template <element... Elements>
class chain_element {
    static_assert(sizeof...(Elements) >= 2);
    using elements = std::tuple<Elements...>;
    using last_element = std::tuple_element_t<sizeof...(Elements) - 1, elements>;

public:
    static constexpr std::uint16_t entries = (0 + ... + Elements::entries);
    static constexpr bool needs_result = (false || ... || Elements::needs_result);
    static constexpr bool has_link_timeout = (false || ... || detail::has_link_timeout<Elements>);
    // The last one's result always comes; another's only when every entry completes by itself.
    static constexpr bool needs_every_result = []<std::size_t... I>(std::index_sequence<I...>) {
        return (false || ... ||
                (std::tuple_element_t<I, elements>::needs_result ||
                 std::tuple_element_t<I, elements>::entries > 1)) ||
               last_element::entries > 1;
    }(std::make_index_sequence<sizeof...(Elements) - 1>{});

    explicit chain_element(elements&& e) noexcept : elements_(std::move(e)) {}

    ring_entry& arm() noexcept {
        ring_entry* first = nullptr;
        ring_entry* last = nullptr;
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

    /// In the middle of a longer chain.
    void leave_behind() noexcept {
        std::apply([](Elements&... each) noexcept { (detail::leave_behind(each), ...); },
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
    /// Hangs an element's entries behind `last`, which then runs before them.
    static void append(ring_entry& head, ring_entry*& first, ring_entry*& last) noexcept {
        if (last == nullptr) {
            first = &head;
        } else {
            // What is linked already (hard_link) stays as it is.
            link_to_next(*last);
            last->next = &head;
        }
        last = &head;
        while (last->next != nullptr) {
            last = last->next;
        }
    }

    template <std::size_t... I>
    void drop_all_but_last(std::index_sequence<I...>) noexcept {
        (detail::leave_behind(std::get<I>(elements_)), ...);
    }

    elements elements_;
};

template <class T>
inline constexpr bool is_chain = false;
template <class... E>
inline constexpr bool is_chain<chain_element<E...>> = true;

/// As a tuple of elements that can stand inside a chain.
template <class Element>
auto linkable(Element&& e) noexcept {
    using E = std::remove_cvref_t<Element>;
    static_assert(!is_drained<E>, "io::drain() is for single operations: the kernel's chains know "
                                  "no barrier inside");
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

/// An element after which the chain goes on even when it has failed.
template <element Element>
class hard_element : public Element {
public:
    // A failure in the middle has a completion of its own, although the chain goes on.
    static constexpr bool needs_result = true;

    explicit hard_element(Element&& e) noexcept : Element(std::move(e)) {}

    ring_entry& arm() noexcept {
        ring_entry& first = Element::arm();
        for (ring_entry* entry = &first; entry != nullptr; entry = entry->next) {
            entry->request.flags |= uring::sqe_flag::io_hardlink;
        }
        return first;
    }
};

/// As a tuple in which all but the last are hard.
template <class First, class... Rest>
auto hard_elements(First&& first, Rest&&... rest) noexcept {
    if constexpr (sizeof...(Rest) == 0) {
        return linkable(std::forward<First>(first));
    } else {
        auto head = linkable(std::forward<First>(first));
        static_assert(std::tuple_size_v<decltype(head)> == 1,
                      "hard_link() takes single operations, except as its last: a failure inside "
                      "a chain ends all that follows");
        return std::tuple_cat(std::tuple(hard_element(std::get<0>(std::move(head)))),
                              hard_elements(std::forward<Rest>(rest)...));
    }
}

} // namespace detail

/// One chain: the kernel starts `b` when `a` has succeeded, without a turn through the program.
/// co_await gives the last result. When one fails, or a read, write or send in the middle transfers
/// less than it was asked to, the rest is not started and the chain gives -ECANCELED. (After fsync,
/// rename and some others the kernel would go on in spite of a failure: what follows these takes a
/// turn through the program. docs/guarantees.md, G13, lists them.)
///
///     n = co_await (peer.send({buf, n}) && peer.recv(buf));
///
/// Threading and cancellation as for a single operation; a stop or timeout cancels whatever of the
/// chain has not happened yet. A chain longer than io_context_options::entries gives -E2BIG.
template <ring_operation A, ring_operation B>
auto operator&&(A&& a, B&& b) noexcept {
    static_assert(!std::is_lvalue_reference_v<A> && !std::is_lvalue_reference_v<B>,
                  "an operation is awaited once: link temporaries, or std::move() the operations");
    return detail::make_chain(std::tuple_cat(detail::linkable(std::move(a).take_element()),
                                             detail::linkable(std::move(b).take_element())));
}

/// One chain that goes on when an operation fails or transfers less than it was asked to: the
/// kernel starts each when the one before has ended, however. co_await gives the last result.
///
///     co_await hard_link(io::fsync(fd), io::close(fd)); // closes in any case
///
/// It may stand in a `&&` chain; what follows it there depends on its last operation. A stop or a
/// timeout around it cancels the operation that is under way, and then each that follows, once it
/// has started: one that neither waits nor takes one of the kernel's workers, such as that close,
/// takes place. What the kernel does not even start, because no call has such arguments (unknown
/// flags), ends all of the submission, -ECANCELED.
template <ring_operation First, ring_operation... Rest>
auto hard_link(First&& first, Rest&&... rest) noexcept {
    static_assert(!std::is_lvalue_reference_v<First> && (!std::is_lvalue_reference_v<Rest> && ...),
                  "an operation is awaited once: link temporaries, or std::move() the operations");
    static_assert(sizeof...(Rest) > 0, "hard_link() links operations: give it two or more");
    if constexpr (sizeof...(Rest) > 0) {
        return detail::make_chain(detail::hard_elements(std::move(first).take_element(),
                                                        std::move(rest).take_element()...));
    }
}

/// Only for the sentences that the compiler says.
template <detail::element A, ring_operation B>
void operator&&(const eager_operation<A>&, const B&) {
    static_assert(detail::always_false<A>,
                  "this operation is under way: link operations first, eager(a && b)");
}
template <ring_operation A, detail::element B>
void operator&&(const A&, const eager_operation<B>&) {
    static_assert(detail::always_false<B>,
                  "this operation is under way: link operations first, eager(a && b)");
}
/// `co_await a && b` awaits `a` alone.
template <ring_operation B>
void operator&&(const io_result&, const B&) {
    static_assert(detail::always_false<B>, "write co_await (a && b), with parentheses");
}

} // namespace coil
