#pragma once

#include <coil/context/operation.hpp>
#include <coil/io/detail/flagged_element.hpp>

#include <type_traits>
#include <utility>

// Modifiers of how an operation is executed (io_uring_enter(2), IOSQE_*).

namespace coil::io {

/// Executes an operation on one of the kernel's workers (IOSQE_ASYNC) instead of trying it inline
/// first: for calls that are known to take long in the kernel (a large buffered read that is not
/// cached) and would delay the context. A call with a timeout in a chain is nevertheless tried
/// inline, because the kernel's link timeout may miss a call that a worker is executing.
template <ring_operation Op>
auto force_async(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: pass a temporary, or std::move() the operation");
    auto forced = detail::wrapped<detail::async_element>(std::move(op).take_element());
    return io_awaitable<decltype(forced)>(std::move(forced));
}

/// A barrier (IOSQE_IO_DRAIN): the operation starts once all operations that this context started
/// earlier have completed; operations started later wait until it has completed. It also waits for
/// operations that wait for a peer (a recv, an accept), but not for multishot streams. coil
/// enforces this order itself, so only operations of this context are delayed. It is meant for
/// programs that only do file I/O.
template <ring_operation Op>
    requires(std::remove_cvref_t<Op>::element_type::entries == 1)
auto drain(Op&& op) noexcept {
    static_assert(!std::is_lvalue_reference_v<Op>,
                  "an operation is awaited once: pass a temporary, or std::move() the operation");
    auto alone = detail::wrapped<detail::drained_element>(std::move(op).take_element());
    return io_awaitable<decltype(alone)>(std::move(alone));
}

/// Produces a readable compiler error.
template <ring_operation Op>
    requires(std::remove_cvref_t<Op>::element_type::entries > 1)
void drain(Op&&)
    COIL_DELETE("drain() takes a single operation: await it before starting a chain of the others");

} // namespace coil::io
