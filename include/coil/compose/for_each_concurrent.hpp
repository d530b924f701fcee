#pragma once

#include <coil/compose/detail/concurrent_calls.hpp>
#include <coil/core/async_generator.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/task.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace coil {

/// Calls `f` for each element of a range, at most `limit` calls at a time, and awaits what each
/// call returns; results are discarded. The await ends when all calls have ended.
///
///     co_await for_each_concurrent(urls, 8, [](const std::string& url) { return fetch(url); });
///
/// Calls start in the order of the elements. After the first exception, thrown by a call or by the
/// range, the other calls are asked to stop and no further call is started; the exception is
/// rethrown when all calls have ended. Further exceptions go to the context's
/// on_unhandled_exception unless they only report a cancellation. A stop of the awaiting task has
/// the same effect, with std::errc::operation_canceled as the exception. The range and `f` are kept
/// until the await ends: temporaries by value, a named range by reference. `f` is called with the
/// result of dereferencing the iterator. A limit of 0 counts as 1.
template <class Range, class F>
    requires(!detail::is_generator<std::remove_cvref_t<Range>> &&
             detail::calls_each<Range, std::size_t, F>)
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
for_each_concurrent(Range&& range, std::size_t limit, F f) {
    return detail::for_each_in_range<detail::kept<Range>, F>(std::forward<Range>(range), limit,
                                                             std::move(f));
}

/// The same for the elements of an async_generator, each of which is moved into its call. After a
/// failure or a stop the generator's body is asked to stop.
template <class Generator, class F>
    requires(detail::is_generator<std::remove_cvref_t<Generator>>)
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
for_each_concurrent(Generator&& elements, std::size_t limit, F f) {
    return detail::for_each_generated<detail::kept<Generator>, F>(std::forward<Generator>(elements),
                                                                  limit, std::move(f));
}

/// Produces a readable compiler error.
template <class Range, class Limit, class F>
    requires(!detail::is_generator<std::remove_cvref_t<Range>> &&
             !detail::calls_each<Range, Limit, F>)
task<> for_each_concurrent(Range&&, Limit&&, F&&)
    COIL_DELETE("write for_each_concurrent(range, 8, f), where f takes an element of the range and "
                "returns a task");

template <class Range, class F>
task<> for_each_concurrent(Range&&, F&&)
    COIL_DELETE("pass how many calls run at a time: for_each_concurrent(range, 8, f)");

} // namespace coil
