#pragma once

#include <coil/compose/detail/link_element.hpp>
#include <coil/compose/timeout.hpp>
#include <coil/context/operation.hpp>
#include <coil/io/eager.hpp>
#include <coil/io/modifiers.hpp>

#include <utility>

namespace coil {

/// Links operations into one chain: the kernel starts `b` after `a` has succeeded, without a round
/// trip through the program (IOSQE_IO_LINK). co_await returns the last result.
///
///     n = co_await (peer.send({buf, n}) && peer.recv(buf));
///
/// If an operation fails, or if a read, write or send in the middle transfers less than requested,
/// the rest is not started and the chain returns -ECANCELED. (The kernel ignores a failure of
/// fsync, rename and some other calls; the operations after such a call are therefore submitted
/// only once it has succeeded. docs/reference/guarantees.md lists these calls under G13.)
///
/// Threading and cancellation: as for a single operation. A stop or timeout cancels the rest of the
/// chain. A chain longer than io_context_options::entries returns -E2BIG.
template <ring_operation A, ring_operation B>
auto operator&&(A&& a, B&& b) noexcept {
    static_assert(!std::is_lvalue_reference_v<A> && !std::is_lvalue_reference_v<B>,
                  "an operation is awaited once: link temporaries, or std::move() the operations");
    return detail::make_chain(std::tuple_cat(detail::linkable(std::move(a).take_element()),
                                             detail::linkable(std::move(b).take_element())));
}

/// Links operations into one chain that continues after failures and short transfers: the kernel
/// starts each operation when the previous one has ended (IOSQE_IO_HARDLINK). co_await returns the
/// last result.
///
///     co_await hard_link(io::fsync(fd), io::close(fd)); // closes in any case
///
/// It may be part of a `&&` chain, where the operations behind it depend on its last one. A stop or
/// timeout around it cancels the operation in progress and then each later one as soon as it
/// starts. An operation that completes at once without an io-wq worker, such as the close above, is
/// still executed. An operation that the kernel rejects at submission (unknown flags) ends the
/// whole submission with -ECANCELED.
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

/// Produces a readable compiler error.
template <detail::element A, ring_operation B>
void operator&&(const eager_operation<A>&, const B&) {
    static_assert(detail::always_false<A>,
                  "this operation has already started: link the operations first, eager(a && b)");
}
template <ring_operation A, detail::element B>
void operator&&(const A&, const eager_operation<B>&) {
    static_assert(detail::always_false<B>,
                  "this operation has already started: link the operations first, eager(a && b)");
}
/// `co_await a && b` would await `a` alone.
template <ring_operation B>
void operator&&(const io_result&, const B&) {
    static_assert(detail::always_false<B>, "write co_await (a && b), with parentheses");
}

} // namespace coil
