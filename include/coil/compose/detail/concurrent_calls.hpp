#pragma once

#include <coil/base/late.hpp>
#include <coil/compose/child_handle.hpp>
#include <coil/compose/detail/join_task.hpp>
#include <coil/compose/detail/nursery.hpp>
#include <coil/compose/scope.hpp>
#include <coil/core/async_generator.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/range_concepts.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// The arguments of for_each_concurrent() for a range.
template <class Range, class Limit, class F>
concept calls_each = std::ranges::input_range<Range> && std::convertible_to<Limit, std::size_t> &&
                     requires(F& f, std::ranges::range_reference_t<Range> element) {
                         requires awaitable<decltype(f(
                             static_cast<std::ranges::range_reference_t<Range>>(element)))>;
                     };

/// A producer and the calls that it starts, which run concurrently. The first failure of any of
/// them asks the others to stop.
class concurrent_calls final : public nursery {
public:
    /// At most `limit` calls run at a time; the producer does not count. `outside`: a stop of this
    /// token stops the producer and the calls.
    concurrent_calls(std::size_t limit, inplace_stop_token outside);
    concurrent_calls(const concurrent_calls&) = delete;
    concurrent_calls& operator=(const concurrent_calls&) = delete;
    ~concurrent_calls();

    /// Runs the producer and waits until it and all calls have ended. Throws the first failure, or
    /// operation_canceled if the producer was stopped before it had seen all elements.
    join_task<void> run(task<> producer) { return {*this, run_all(std::move(producer))}; }

private:
    task<> run_all(task<> producer);
    void failed(child_state_base& child, std::exception_ptr error) noexcept override;

    std::exception_ptr error_;
    late<relayed_stop> outside_;
    bool complete_ = false;
};

template <class F, class Element>
task<> call_and_discard(F& f, Element element) {
    co_await await_and_discard<std::invoke_result_t<F&, Element>>(
        std::invoke(f, static_cast<Element&&>(element)));
}

/// Awaiting it starts a call as soon as fewer than `limit` calls are running, and does not wait for
/// its end. Throws operation_canceled if a stop is requested before that.
template <class Element, class F>
auto start_call(concurrent_calls& calls, F& f, Element&& element) {
    return supervised_spawn<void>(calls,
                                  call_and_discard<F, Element>(f, std::forward<Element>(element)),
                                  {}, std::source_location());
}

template <class Range, class F>
task<> call_for_range(concurrent_calls& calls, Range& range, F& f) {
    for (auto&& each : range) {
        using element = std::ranges::range_reference_t<Range>;
        co_await start_call<element>(calls, f, static_cast<element&&>(each));
    }
}

template <class T, class F>
task<> call_for_generated(concurrent_calls& calls, async_generator<T>& elements, F& f) {
    while (auto each = co_await elements.next()) {
        co_await start_call<T>(calls, f, static_cast<T&&>(*each));
    }
}

template <class KeptRange, class F>
task<> for_each_in_range(KeptRange range, std::size_t limit, F f) {
    concurrent_calls calls(limit, co_await this_task::stop_token());
    co_await calls.run(call_for_range(calls, range, f));
}

template <class KeptGenerator, class F>
task<> for_each_generated(KeptGenerator elements, std::size_t limit, F f) {
    concurrent_calls calls(limit, co_await this_task::stop_token());
    co_await calls.run(call_for_generated(calls, elements, f));
}

template <class T>
inline constexpr bool is_generator = false;
template <class T>
inline constexpr bool is_generator<async_generator<T>> = true;

} // namespace coil::detail
