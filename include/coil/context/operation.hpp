#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/io_result.hpp>

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// The operation behind an io_awaitable: what is submitted, and how the result is converted. Before
/// the await it only stores arguments and may be moved; after that it stays in place, so `arm()`
/// may take addresses of its members.
///
/// - `arm()` returns the first entry; further ones are linked by `entry.next`.
/// - `entries` is their number.
/// - `needs_result`: the result must be seen even inside a chain.
/// - `result()` converts the result for co_await, after completion. It must not throw, because it
///   may be called late or never.
/// - `drop()` discards the result, after completion or without it.
/// - `discard_mid_chain()` (optional) replaces drop() in the middle of a chain whose last result is
///   wanted.
/// - `may_wake_spuriously` (optional): it has a poll_then_try_op.
///
/// This one is a plain Linux call: one SQE and an io_result.
class io_element {
public:
    static constexpr std::uint16_t entries = 1;
    static constexpr bool needs_result = false;

    explicit io_element(const uring::sqe& request) noexcept : entry_(request) {}

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

/// Whether the kernel limits a call of the element: see kernel_timed_element.
template <class Element>
inline constexpr bool has_link_timeout = [] {
    if constexpr (requires { Element::has_link_timeout; }) {
        return Element::has_link_timeout;
    } else {
        return false;
    }
}();

/// A result as a limit reports it: an expired limit and a stop are never confused.
template <class Result>
Result timed_out_if(bool expired, Result result) noexcept {
    return expired && result == -ECANCELED ? Result(-ETIMEDOUT) : result;
}

/// Applies a wrapper to an element. A wrapper goes inside the limits and chains around the element,
/// which keep their types.
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

/// The awaiter of an io_awaitable: the element and what the loop needs to wait for it. A separate
/// type, so that the operands of `a && b` are plain data that the compiler can optimize away, and
/// only operations in flight take space in the coroutine's frame.
template <element Element>
class io_awaiter : protected io_op {
public:
    explicit io_awaiter(Element&& e) noexcept : element_(std::move(e)) {}
    io_awaiter(const io_awaiter&) = delete;
    io_awaiter& operator=(const io_awaiter&) = delete;
    ~io_awaiter() {
        if (!under_way()) [[likely]] {
            return;
        }
        release_kernel();
        element_.drop();
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        event_loop& loop = required_loop();
        const inplace_stop_token token = stop_token_of(waiter);
        sqe_slot& first = element_.arm();
        if constexpr (Element::entries == 1 && !requires { Element::may_wake_spuriously; }) {
            if (start_at_once(loop, waiter, token, first)) [[likely]] {
                return;
            }
        }
        start(loop, waiter, token, first, Element::entries, needs_every_result<Element>);
    }

    auto await_resume() noexcept {
        resumed();
        if constexpr (has_link_timeout<Element>) {
            return timed_out_if(link_timeout_expired(), element_.result());
        } else {
            return element_.result();
        }
    }

    /// Called instead of await_resume(): the result is not wanted.
    void discard() noexcept {
        resumed();
        element_.drop();
    }

protected:
    void launch(event_loop& loop, std::coroutine_handle<> waiter,
                inplace_stop_token token) noexcept {
        start(loop, waiter, token, element_.arm(), Element::entries, needs_every_result<Element>);
    }

private:
    Element element_;
};

} // namespace detail

/// A Linux call that starts when it is awaited. The await suspends the coroutine, without
/// allocating, until the kernel has completed the call.
///
///     int n = co_await io::read(fd, buf);
///
/// Threading: runs on the context of the awaiting coroutine.
///
/// Cancellation: if a stop is requested of the task, the await returns -ECANCELED, or the real
/// result if that came first. In both cases the kernel has finished with the buffers. A coroutine
/// that is destroyed while it waits cancels the call and waits until the kernel has finished.
///
/// An awaitable may be moved before it is awaited; `a && b` and `timeout(a, d)` rely on that.
/// Awaiting it again makes the call again.
template <detail::element Element>
class [[nodiscard("did you forget to co_await?")]] io_awaitable {
public:
    using element_type = Element;

    explicit io_awaitable(Element&& e) noexcept : element_(std::move(e)) {}
    io_awaitable(io_awaitable&&) noexcept = default;
    io_awaitable& operator=(io_awaitable&&) = delete;
    ~io_awaitable() = default;

    [[nodiscard]] detail::io_awaiter<Element> operator co_await() noexcept {
        static_assert(detail::deferred_result<detail::io_awaiter<Element>>);
        return detail::io_awaiter<Element>(std::move(element_));
    }

    /// Used by combinators: the operation of this awaitable.
    [[nodiscard]] Element take_element() && noexcept { return std::move(element_); }

private:
    Element element_;
};

/// A plain call: co_await returns an io_result.
using operation = io_awaitable<detail::io_element>;
/// A call that creates a descriptor: co_await returns an io_result.
using descriptor_operation = io_awaitable<detail::descriptor_element>;

namespace detail {

inline operation make_operation(const uring::sqe& request) noexcept {
    return operation(io_element(request));
}

inline descriptor_operation make_descriptor_operation(const uring::sqe& request) noexcept {
    return descriptor_operation(descriptor_element(request));
}

template <class T>
inline constexpr bool is_io_awaitable = false;
template <class E>
inline constexpr bool is_io_awaitable<io_awaitable<E>> = true;

} // namespace detail

/// An awaitable made of ring operations: what `&&` links and timeout(op, d) limits.
template <class T>
concept ring_operation = detail::is_io_awaitable<std::remove_cvref_t<T>>;

} // namespace coil
