#pragma once

#include <coil/core/detail/range_concepts.hpp>
#include <coil/interleave/detail/lookup_loop.hpp>
#include <coil/interleave/detail/lookup_sinks.hpp>
#include <coil/interleave/lookup.hpp>
#include <coil/interleave/prefetch.hpp>

#include <cstddef>
#include <limits>
#include <type_traits>

namespace coil {

namespace detail {

template <class Keys, class F, class Sink>
std::size_t run_lookups(std::size_t slots, Keys& keys, F& f, Sink& sink) {
    auto loop = make_lookup_loop(slots, keys, f, sink);
    while (loop.run(std::numeric_limits<std::size_t>::max())) {
    }
    return loop.started();
}

} // namespace detail

/// A width that suits most processors: it covers the 10 to 16 cache lines that a core can load at
/// the same time. A larger width costs little as long as the frames of the lookups fit into the L1
/// cache.
inline constexpr std::size_t default_interleave_width = 16;

/// Runs the lookup `f(key)` for each key of a range, `width` at a time on this thread, and writes
/// the results to `out` in the order of the keys. Returns the number of keys.
///
///     lookup<int> price_of(const table& t, int article);
///
///     std::vector<int> prices(articles.size());
///     interleave(16, articles, [&](int article) { return price_of(t, article); }, prices);
///
/// The lookups take turns: each runs until it awaits a prefetch. When one ends, its slot takes the
/// next key immediately, so their lengths may differ. If the data are in the cache, a plain loop
/// is faster.
///
/// `out` is one of
/// - a random access range: element i is assigned the result of key i as soon as it is known. A
///   range with fewer elements than there are keys terminates the program;
/// - a random access iterator: the same without the check;
/// - another output iterator, such as std::back_inserter: written in order.
///
/// Keys are read from the range one by one, in order. `f` is called when a slot is free and may be
/// a coroutine, including a lambda with captures, or a function that returns one. Parameters of the
/// coroutine may refer to the key.
///
/// Exceptions of `f`, of the range, of assignments and of lookups propagate after the lookups that
/// have not ended have been destroyed. If several lookups fail, the exception of the first one that
/// ends propagates; with an output iterator, that of the lookup with the earliest key. Which
/// results were written is unspecified, with one exception: if a lookup failed, an output iterator
/// has received exactly the results of the keys before that one. A width of 0 counts as 1.
///
/// Memory: a block for the frames of all lookups, and a few for the slots and for results that must
/// wait for their turn, from the frame allocator of this thread.
///
/// Threading: blocks the calling thread, and with it all coroutines of its context; in a task
/// prefer async_interleave(). Calls on several threads are independent.
template <std::ranges::input_range Keys, class F, class Out>
std::size_t interleave(std::size_t width, Keys&& keys, F&& f, Out&& out) {
    static_assert(!std::ranges::range<Out> || std::is_lvalue_reference_v<Out> ||
                      std::ranges::borrowed_range<Out>,
                  "the results would be written to a temporary: pass a named range");
    static_assert(detail::makes_lookups<F, Keys>, "the function of interleave returns a lookup: "
                                                  "make it a coroutine lookup<R> f(key)");
    if constexpr (detail::makes_lookups<F, Keys>) {
        using R = detail::lookup_result_t<F, Keys>;
        constexpr bool can_be_written = detail::takes_results<R, std::remove_reference_t<Out>>;
        static_assert(can_be_written, "interleave writes its results to a random access range (a "
                                      "vector, a span) or to an iterator to which they can be "
                                      "assigned");
        if constexpr (can_be_written) {
            const std::size_t slots = detail::slots_for(width, keys);
            auto sink = detail::sink_for<R>(slots, out);
            return detail::run_lookups(slots, keys, f, sink);
        }
    }
    return 0;
}

/// Produces a readable compiler error.
template <class First, class Second, class... Rest>
    requires(!std::ranges::input_range<Second>)
std::size_t interleave(First&&, Second&&, Rest&&...)
    COIL_DELETE("the width comes first, then a range: interleave(16, keys, f, out)");

/// The same for lookups that return void.
template <std::ranges::input_range Keys, class F>
std::size_t interleave(std::size_t width, Keys&& keys, F&& f) {
    constexpr bool is_void = std::is_void_v<detail::lookup_result_t<F, Keys>>;
    static_assert(is_void, "these lookups have results: call interleave(width, keys, f, out)");
    if constexpr (is_void) {
        detail::rethrow_only sink;
        return detail::run_lookups(detail::slots_for(width, keys), keys, f, sink);
    }
    return 0;
}

/// The same without an order: calls `consume(index, result)`, or `consume(index)` for lookups that
/// return void, as soon as a lookup has ended. `index` counts the keys from 0.
///
///     interleave_unordered(16, keys, find, [&](std::size_t i, const entry* e) { ... });
template <std::ranges::input_range Keys, class F, class Consume>
std::size_t interleave_unordered(std::size_t width, Keys&& keys, F&& f, Consume&& consume) {
    detail::pass_to<detail::lookup_result_t<F, Keys>, std::remove_reference_t<Consume>> sink(
        consume);
    return detail::run_lookups(detail::slots_for(width, keys), keys, f, sink);
}

} // namespace coil
