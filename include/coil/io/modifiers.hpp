#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/abi.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

// Modifiers of how an operation is executed (io_uring_enter(2), IOSQE_*).

namespace coil {

namespace detail {

/// An element all of whose entries carry a flag.
template <element Element, std::uint8_t Flag>
class flagged_element : public Element {
public:
    explicit flagged_element(Element&& e) noexcept : Element(std::move(e)) {}

    ring_entry& arm() noexcept {
        ring_entry& first = Element::arm();
        for (ring_entry* entry = &first; entry != nullptr; entry = entry->next) {
            entry->request.flags |= Flag;
        }
        return first;
    }
};

template <element Element>
using async_element = flagged_element<Element, uring::sqe_flag::async>;
/// See io_wait::start: this flag is handled by coil and never reaches the kernel.
template <element Element>
class drained_element : public flagged_element<Element, uring::sqe_flag::io_drain> {
public:
    static constexpr bool drained = true;

    using flagged_element<Element, uring::sqe_flag::io_drain>::flagged_element;
};

template <class Element>
inline constexpr bool is_drained = requires { Element::drained; };

} // namespace detail

namespace io {

/// Executes an operation on one of the kernel's workers (IOSQE_ASYNC) instead of trying it inline
/// first: for calls that are known to take long in the kernel (a large buffered read that is not
/// cached) and would delay the context. A call with a limit inside a chain is tried inline
/// nevertheless, as the kernel's link timeout may miss a call that a worker has begun.
template <ring_operation Op>
auto force_async(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: give a temporary, or std::move() the operation");
    auto forced = detail::wrapped<detail::async_element>(std::move(op).take_element());
    return io_awaitable<decltype(forced)>(std::move(forced));
}

/// Starts an operation after everything that this context started before has completed, and starts
/// nothing else before it has completed (IOSQE_IO_DRAIN): a barrier. It waits also for operations
/// that wait for a peer (a recv, an accept), but not for multishot streams. coil enforces this
/// order itself, so it delays only operations of this context; it is meant for programs that only
/// do file I/O.
template <ring_operation Op>
auto drain(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: give a temporary, or std::move() the operation");
    using element = typename std::remove_cvref_t<Op>::element_type;
    static_assert(element::entries == 1, "drain single operations: put what follows into a chain "
                                         "of its own, after the drained one has been awaited");
    if constexpr (element::entries == 1) {
        auto alone = detail::wrapped<detail::drained_element>(std::move(op).take_element());
        return io_awaitable<decltype(alone)>(std::move(alone));
    }
}

} // namespace io

} // namespace coil
