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
    requires(!detail::limits_chain<A> && !detail::limits_chain<B>)
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
/// It may be part of a `&&` chain, where the operations after it depend on its last one. A stop or
/// timeout around it cancels the operation in progress and then each later one as soon as it
/// starts. An operation that completes immediately without an io-wq worker, such as the close
/// above, is still executed. If the kernel rejects an operation at submission (unknown flags),
/// the operations of the chain that are submitted with it are not started: -ECANCELED.
template <ring_operation First, ring_operation... Rest>
    requires(sizeof...(Rest) > 0) && (!detail::chain_before_last<First, Rest...>)
auto hard_link(First&& first, Rest&&... rest) noexcept {
    static_assert(!std::is_lvalue_reference_v<First> && (!std::is_lvalue_reference_v<Rest> && ...),
                  "an operation is awaited once: link temporaries, or std::move() the operations");
    return detail::make_chain(
        detail::hard_elements(std::move(first).take_element(), std::move(rest).take_element()...));
}

#if defined(COIL_CHECK_LIFETIMES)
/// The same with operands by value, so that the compiler can check lifetimes.
template <detail::element A, detail::element B>
    requires(!detail::limits_chain<io_awaitable<A>> && !detail::limits_chain<io_awaitable<B>>)
auto operator&&(io_awaitable<A> a COIL_LIFETIMEBOUND, io_awaitable<B> b COIL_LIFETIMEBOUND) {
    return operator&& <io_awaitable<A>, io_awaitable<B>>(std::move(a), std::move(b));
}
#endif

/// Produce readable compiler errors.
template <ring_operation A, ring_operation B>
    requires(detail::limits_chain<A> || detail::limits_chain<B>)
void operator&&(A&&, B&&)
    COIL_DELETE("inside a chain, limit single operations: timeout(a, 1s) && timeout(b, 1s)");
template <ring_operation Single>
void hard_link(Single&&) COIL_DELETE("hard_link() links operations: give it two or more");
template <ring_operation First, ring_operation... Rest>
    requires(sizeof...(Rest) > 0) && detail::chain_before_last<First, Rest...>
void hard_link(First&&, Rest&&...)
    COIL_DELETE("hard_link() takes single operations, except as its last: a failure inside a chain "
                "ends all operations behind it");
template <detail::element A, ring_operation B>
void operator&&(const eager_operation<A>&, const B&)
    COIL_DELETE("this operation has already started: link the operations first, eager(a && b)");
template <ring_operation A, detail::element B>
void operator&&(const A&, const eager_operation<B>&)
    COIL_DELETE("this operation has already started: link the operations first, eager(a && b)");
/// `co_await a && b` would await only `a`.
template <ring_operation B>
void operator&&(const io_result&, const B&)
    COIL_DELETE("write co_await (a && b), with parentheses");

} // namespace coil
