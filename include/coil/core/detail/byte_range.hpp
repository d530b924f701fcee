#pragma once

#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/io_result.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace coil::detail {

template <class R>
concept byte_like_range =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::is_trivially_copyable_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class R>
concept writable_byte_range =
    byte_like_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Types that are passed as buffers by mistake: a pointer, which has no length; a number; a range
/// whose memory is not contiguous, or whose elements are not plain data.
template <class T>
concept pointer_without_length = std::is_pointer_v<std::remove_cvref_t<T>>;
template <class T>
concept not_bytes = std::is_arithmetic_v<std::remove_cvref_t<T>> ||
                    (std::ranges::range<T> && !byte_like_range<std::remove_reference_t<T>&>);
template <class T>
concept const_bytes = byte_like_range<std::remove_reference_t<T>&> &&
                      !writable_byte_range<std::remove_reference_t<T>&>;

/// Whether the elements of a range are destroyed with it: false for views such as std::string_view.
template <class R>
concept owns_elements = !std::ranges::borrowed_range<std::remove_cvref_t<R>>;

/// A temporary that owns its bytes, such as a std::string or std::vector. Not a view, whose
/// elements do not become const when the view is const.
template <class R>
concept temporary_bytes =
    !std::is_lvalue_reference_v<R> && !std::is_const_v<R> && owns_elements<R> &&
    writable_byte_range<R&> && std::ranges::range<const R&> &&
    std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<const R&>>>;

// The same concepts as variables. A constraint that names a concept makes the compiler expand the
// concept, down to the iterator concepts, for each function that has the constraint. If it names a
// variable, the compiler expands the concept once for each type that is passed.
template <class R>
inline constexpr bool is_byte_like_range = byte_like_range<R>;
template <class R>
inline constexpr bool is_writable_range = writable_byte_range<R>;
template <class T>
inline constexpr bool is_not_bytes = not_bytes<T>;
template <class R>
inline constexpr bool is_const_bytes = const_bytes<R>;
template <class R>
inline constexpr bool is_owner_of_elements = owns_elements<R>;
template <class R>
inline constexpr bool is_temporary_bytes = temporary_bytes<R>;

/// An integer, or the result of a call: `peer.send({buf, co_await peer.recv(buf)})`.
template <class N>
concept byte_count = std::integral<N> || std::same_as<N, io_result>;

template <byte_count N>
constexpr std::size_t to_size(N n) noexcept {
    // A negative length is an error code that was used as a length. Transfers nothing instead of
    // 2^64 bytes.
    if constexpr (std::same_as<N, io_result>) {
        return to_size(static_cast<int>(n));
    } else if constexpr (std::is_signed_v<N>) {
        return n < 0 ? 0 : static_cast<std::size_t>(n);
    } else {
        return static_cast<std::size_t>(n);
    }
}

} // namespace coil::detail
