#pragma once

#include <coil/context/detail/io_awaiter.hpp>
#include <coil/context/detail/io_element.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

template <detail::element Element>
class io_awaitable;

/// The awaitable of a plain call, see io_awaitable: co_await returns an io_result.
using operation = io_awaitable<detail::io_element>;
/// The awaitable of a call that creates a descriptor: co_await returns an io_result.
using descriptor_operation = io_awaitable<detail::descriptor_element>;

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
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED io_awaitable {
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

    /// Produces a readable compiler error: the operation is used as if it were its result.
    operator int() const // NOLINT(*-explicit-*)
        COIL_DELETE_MEMBER("did you forget to co_await? Write int n = co_await io::read(fd, buf)");
    template <class Optional>
        requires std::same_as<Optional, std::optional<int>>
    operator Optional() const // NOLINT(*-explicit-*)
        COIL_DELETE("did you forget to co_await? Write int n = co_await io::read(fd, buf)");

    /// Used by combinators: the operation of this awaitable.
    [[nodiscard]] Element take_element() && noexcept { return std::move(element_); }

private:
    Element element_;
};

namespace detail {

inline operation make_operation(const prepared_sqe& request) noexcept {
    return operation(io_element(request));
}

inline descriptor_operation make_descriptor_operation(const prepared_sqe& request) noexcept {
    return descriptor_operation(descriptor_element(request));
}

template <class T>
inline constexpr bool is_io_awaitable = false;
template <class E>
inline constexpr bool is_io_awaitable<io_awaitable<E>> = true;

#if defined(COIL_CHECK_LIFETIMES)
template <class E>
inline constexpr bool checked_by_value<io_awaitable<E>> = true;
#endif

} // namespace detail

/// An awaitable made of ring operations: an operand of `&&` and of timeout(op, d).
template <class T>
concept ring_operation = detail::is_io_awaitable<std::remove_cvref_t<T>>;

} // namespace coil
