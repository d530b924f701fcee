#pragma once

#include <coil/core/awaitable.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/task.hpp>
#include <coil/interleave/detail/lookup_loop.hpp>
#include <coil/interleave/detail/run_in_slices.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace coil {

/// interleave() for tasks: runs the same lookups with the same results, and lets the other
/// coroutines of the context run every 50 µs.
///
///     co_await async_interleave(16, articles, price_of, prices);
///
/// The await returns the number of keys. Even if no other coroutine is ready, it costs a turn of
/// the loop every 50 µs. Other coroutines run only between two prefetches, so a lookup that
/// computes for a long time without a prefetch delays them longer.
///
/// Threading: the lookups run on the context of the calling task, which must have one. They must
/// not assume that nothing else runs between two prefetches: other coroutines do, and may change
/// the data.
///
/// Cancellation: once the calling task is asked to stop, the lookups are destroyed within about
/// 50 µs, and the await throws std::system_error with std::errc::operation_canceled. Results
/// already written stay.
///
/// Lifetime: named ranges of keys and of results are kept by reference, temporaries and iterators
/// by value, `f` by value.
template <std::ranges::input_range Keys, class F, class Out>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<std::size_t>
async_interleave(std::size_t width, Keys&& keys, F f, Out&& out) {
    using R = detail::lookup_result_t<F, Keys>;
    static_assert(!std::ranges::range<Out> || std::is_lvalue_reference_v<Out> ||
                      std::ranges::borrowed_range<Out>,
                  "the results would be written to a temporary: pass a named range");
    return detail::interleave_to<R, detail::kept<Keys>, F, detail::kept<Out>>(
        width, std::forward<Keys>(keys), std::move(f), std::forward<Out>(out));
}

/// The same for lookups that return void.
template <std::ranges::input_range Keys, class F>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<std::size_t>
async_interleave(std::size_t width, Keys&& keys, F f) {
    static_assert(std::is_void_v<detail::lookup_result_t<F, Keys>>,
                  "these lookups have results: call async_interleave(width, keys, f, out)");
    return detail::interleave_void<detail::kept<Keys>, F>(width, std::forward<Keys>(keys),
                                                          std::move(f));
}

} // namespace coil
