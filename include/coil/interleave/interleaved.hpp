#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/generator.hpp>
#include <coil/interleave/detail/lookup_loop.hpp>
#include <coil/interleave/detail/lookup_sinks.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class R, class Keys, class F>
generator<R> interleaved_results(std::size_t width, Keys keys, F f) {
    const std::size_t slots = slots_for(width, keys);
    in_order_window<R> window(slots);
    auto loop = make_lookup_loop(slots, keys, f, window);
    do {
        loop.run(max<std::size_t>(slots, 1));
        while (window.has_next()) {
            co_yield window.take_next();
        }
    } while (!loop.done());
}

} // namespace detail

/// A range of the results of interleave(), computed while it is iterated over, in the order of the
/// keys.
///
///     for (const entry* e : interleaved(16, keys, [&](int key) { return find(t, key); }))
///         ...
///
/// At most `width` lookups run at a time; at most four times as many results, rounded up to a power
/// of two, are kept for reordering. Between two elements the lookups are suspended: what they
/// prefetched may leave the cache while the caller does other work.
///
/// An exception of a lookup propagates from begin() or ++ in place of its result, after the results
/// of the keys before it; then the range has ended. Destroying the range destroys the lookups. A
/// named range of keys is kept by reference, a temporary by value; `f` is kept by value.
template <std::ranges::input_range Keys, class F>
[[nodiscard]] COIL_CORO_WRAPPER auto interleaved(std::size_t width, Keys&& keys, F f) {
    using R = detail::lookup_result_t<F, Keys>;
    static_assert(!std::is_void_v<R>,
                  "these lookups have no results to iterate over: call interleave(width, keys, f)");
    return detail::interleaved_results<R, detail::kept<Keys>, F>(width, std::forward<Keys>(keys),
                                                                 std::move(f));
}

} // namespace coil
