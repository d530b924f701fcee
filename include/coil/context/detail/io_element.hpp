#pragma once

#include <coil/context/detail/sqe_slot.hpp>
#include <coil/core/io_result.hpp>

#include <cerrno>
#include <concepts>
#include <cstdint>
#include <utility>

namespace coil::detail {

/// The operation behind an io_awaitable: what is submitted, and how the result is converted. Before
/// the await it only stores arguments and may be moved; after that it stays in place, so `arm()`
/// may take addresses of its members.
///
/// - `arm()` returns the first entry; further ones are linked by `entry.next`.
/// - `entries` is their number.
/// - `needs_result`: the result must be seen even inside a chain.
/// - `result()` converts the result for co_await, after completion. It must not throw, because it
///   may be called late or never.
/// - `drop()` discards the result, whether or not the operation has completed.
/// - `discard_mid_chain()` (optional) replaces drop() in the middle of a chain whose last result is
///   wanted.
/// - `may_wake_spuriously` (optional): its entry is a poll_then_try_op.
///
/// This class is a plain Linux call: one SQE and an io_result.
class io_element {
public:
    static constexpr std::uint16_t entries = 1;
    static constexpr bool needs_result = false;

    explicit io_element(const prepared_sqe& request) noexcept : entry_(request) {}

    sqe_slot& arm() noexcept { return entry_; }
    [[nodiscard]] io_result result() noexcept { return io_result(entry_.result); }
    void drop() noexcept {}

protected:
    sqe_slot entry_;
};

/// A call that returns a new descriptor, which is closed if it is not received (guarantee G4).
class descriptor_element : public io_element {
public:
    static constexpr bool needs_result = true;

    using io_element::io_element;

    void drop() noexcept;
};

template <class E>
concept element = requires(E e) {
    { e.arm() } -> std::same_as<sqe_slot&>;
    { E::entries } -> std::convertible_to<std::uint16_t>;
    { E::needs_result } -> std::convertible_to<bool>;
    { e.result() } noexcept;
    { e.drop() } noexcept;
};

/// Whether every entry of an element must post its own CQE (see io_op).
template <class Element>
inline constexpr bool needs_every_result = [] {
    if constexpr (requires { Element::needs_every_result; }) {
        return Element::needs_every_result;
    } else {
        return false;
    }
}();

/// Whether the kernel enforces a timeout on the element's call: see kernel_timed_element.
template <class Element>
inline constexpr bool has_link_timeout = [] {
    if constexpr (requires { Element::has_link_timeout; }) {
        return Element::has_link_timeout;
    } else {
        return false;
    }
}();

/// A result that consists of an io_result and what else the call has returned.
template <class Result>
concept detailed_result = requires(Result& r) {
    { r.result } -> std::same_as<io_result&>;
};

/// The result of a call that failed with -errno.
template <class Result>
Result failed_with(int error) noexcept {
    if constexpr (detailed_result<Result>) {
        Result failed{};
        failed.result = io_result(error);
        return failed;
    } else {
        return Result(error);
    }
}

/// The result of a call with a timeout: -ETIMEDOUT if the timeout cancelled it. After a stop
/// request the result remains -ECANCELED.
template <class Result>
Result timed_out_if(bool expired, Result result) noexcept {
    if constexpr (detailed_result<Result>) {
        result.result = timed_out_if(expired, result.result);
        return result;
    } else {
        return expired && result == -ECANCELED ? Result(-ETIMEDOUT) : result;
    }
}

/// Applies a wrapper to an element. If the element is a timeout or a chain, the wrapper is applied
/// to the operation inside.
template <template <class> class Wrapper, element Element>
auto wrapped(Element&& e) noexcept {
    if constexpr (requires { std::move(e).template wrap<Wrapper>(); }) {
        return std::move(e).template wrap<Wrapper>();
    } else {
        return Wrapper<Element>(std::move(e));
    }
}

/// Discards the result of an element in the middle of a chain.
template <element Element>
void discard_mid_chain(Element& e) noexcept {
    if constexpr (requires { e.discard_mid_chain(); }) {
        e.discard_mid_chain();
    } else {
        e.drop();
    }
}

} // namespace coil::detail
