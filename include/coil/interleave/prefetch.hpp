#pragma once

#include <coil/interleave/detail/prefetch_awaiter.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace coil {

/// In a lookup: asks the processor to load the cache line of `address`, and lets the other lookups
/// run meanwhile. With several addresses, the line of each.
///
///     co_await prefetch(node);
///     if (node->key == key) ...
///
/// It never fails: the line of an invalid or null address is not loaded. It is only a hint; reading
/// the memory afterwards waits if the line has not arrived. Await one prefetch for each access that
/// probably misses the cache, and none for what is known to be cached.
template <class... More>
    requires(std::is_convertible_v<More, const void*> && ...)
inline detail::prefetch_awaiter prefetch(const void* address, More... more) noexcept {
    detail::prefetch_line<0>(address);
    (detail::prefetch_line<0>(more), ...);
    return {};
}

/// The same for every cache line of `bytes` bytes.
///
///     co_await prefetch(node, sizeof(*node));
template <std::integral Size>
inline detail::prefetch_awaiter prefetch(const void* address, Size bytes) noexcept {
    detail::prefetch_lines<0>(address, static_cast<std::size_t>(bytes));
    return {};
}

/// Like prefetch(), but for memory that the lookup is going to change: other processors give up
/// their copies of the line, so that the store does not have to wait for that.
inline detail::prefetch_awaiter prefetch_for_write(const void* address) noexcept {
    detail::prefetch_line<1>(address);
    return {};
}
inline detail::prefetch_awaiter prefetch_for_write(const void* address,
                                                   std::size_t bytes) noexcept {
    detail::prefetch_lines<1>(address, bytes);
    return {};
}

} // namespace coil
