#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/abi.hpp>

#include <cstdint>
#include <utility>

namespace coil::detail {

/// An element all of whose entries carry a flag.
template <element Element, std::uint8_t Flag>
class flagged_element : public Element {
public:
    explicit flagged_element(Element&& e) noexcept : Element(std::move(e)) {}

    sqe_slot& arm() noexcept {
        sqe_slot& first = Element::arm();
        for (sqe_slot* entry = &first; entry != nullptr; entry = entry->next()) {
            entry->request.flags |= Flag;
        }
        return first;
    }
};

template <element Element>
using async_element = flagged_element<Element, uring::sqe_flag::async>;
/// See io_op::start: this flag is handled by coil and never reaches the kernel.
template <element Element>
class drained_element : public flagged_element<Element, uring::sqe_flag::io_drain> {
public:
    static constexpr bool drained = true;

    using flagged_element<Element, uring::sqe_flag::io_drain>::flagged_element;
};

template <class Element>
inline constexpr bool is_drained = requires { Element::drained; };

} // namespace coil::detail
