#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/io_result.hpp>

#include <utility>

namespace coil::detail {

/// A call whose result must not be ignored: the compiler warns, see checked_io_result.
template <element Element>
class checked_element : public Element {
public:
    explicit checked_element(Element&& e) noexcept : Element(std::move(e)) {}

    [[nodiscard]] checked_io_result result() noexcept {
        return checked_io_result(Element::result());
    }
};

template <element Element>
[[nodiscard]] io_awaitable<checked_element<Element>> checked(io_awaitable<Element>&& op) noexcept {
    return io_awaitable<checked_element<Element>>(
        checked_element<Element>(std::move(op).take_element()));
}

} // namespace coil::detail

namespace coil {

/// Like `operation`, but the compiler warns if the result is ignored.
using checked_operation = io_awaitable<detail::checked_element<detail::io_element>>;

} // namespace coil
