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

/// Whether the elements of a range end with it: false for views such as std::string_view.
template <class R>
concept owns_elements = !std::ranges::borrowed_range<std::remove_cvref_t<R>>;

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
