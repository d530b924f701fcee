#pragma once

#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/explain_child.hpp>
#include <coil/compose/detail/shielded_awaiter.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/task.hpp>

#include <type_traits>
#include <utility>

namespace coil {

/// The awaitable returned by shield().
template <class Kept>
class [[nodiscard("did you forget to co_await?")]] COIL_WARN_UNUSED shielded_awaitable
    : public detail::not_its_result<shielded_awaitable<Kept>> {
public:
    explicit shielded_awaitable(Kept&& awaitable) : awaitable_(static_cast<Kept&&>(awaitable)) {}

    [[nodiscard]] detail::shielded_await<Kept> operator co_await() && {
        return detail::shielded_await<Kept>(awaitable_);
    }
    template <class Self = void>
    detail::shielded_await<Kept> operator co_await() & {
        static_assert(detail::always_false<Self>, "shield(...) is awaited once: write co_await "
                                                  "std::move(x), or await it directly");
        return detail::shielded_await<Kept>(awaitable_);
    }

private:
    Kept awaitable_;
};

/// Awaits `work` without cancellation: a task gets a token that is never stopped, and an operation
/// is not cancelled when the awaiting task is asked to stop.
///
///     co_await shield(write_footer(file)); // runs to its end even in a cancelled task
///
/// A combinator around it, such as when_any or timeout, waits until the shielded work has ended.
/// Destroying the awaiting frame, as a shutdown does, destroys the shielded work as well.
template <class A>
    requires awaitable<detail::kept<A>>
auto shield(A&& work) {
    static_assert(detail::can_be_kept<A>,
                  "an awaitable that cannot be moved is passed by name: auto x = "
                  "eager(op); shield(x)");
    return shielded_awaitable<detail::kept<A>>(std::forward<A>(work));
}

#if defined(COIL_CHECK_LIFETIMES)
/// The same for a task. It is passed by value, so that the compiler can check lifetimes.
template <class T>
COIL_CORO_COPIES auto shield(task<T> work COIL_LIFETIMEBOUND) {
    return shielded_awaitable<task<T>>(std::move(work));
}
template <class Kept>
inline constexpr bool detail::checked_by_value<shielded_awaitable<Kept>> = true;
#endif

/// Produces a readable compiler error.
template <class A>
    requires(!awaitable<detail::kept<A>>)
void shield(A&&) COIL_EXPLAIN_CHILDREN(A) {
    detail::explain_child<A>();
}

} // namespace coil
