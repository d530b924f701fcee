#pragma once

#include <coil/compose/detail/nursery.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <utility>

namespace coil::detail {

/// A task that joins a nursery. If a coroutine awaits it directly, the nursery learns whether it is
/// a local of that coroutine, so that destroying the coroutine finds the children below the join
/// (guarantee G10). In any other use it is an ordinary task.
template <class T>
class [[nodiscard("did you forget to co_await?")]] join_task : public task<T> {
public:
    join_task(nursery& joined, task<T>&& work) noexcept
        : task<T>(std::move(work)), nursery_(&joined) {}

    class awaiter : public task<T>::awaiter {
    public:
        awaiter(typename task<T>::awaiter&& base, nursery& joined) noexcept
            : task<T>::awaiter(base), nursery_(joined) {}

        template <class P>
        transfer await_suspend(std::coroutine_handle<P> parent) noexcept {
            if constexpr (std::derived_from<P, promise_base>) {
                nursery_.find_frame(parent, parent.promise(), this);
            }
            return task<T>::awaiter::await_suspend(parent);
        }

    private:
        nursery& nursery_;
    };

    using task<T>::operator co_await;
    awaiter operator co_await() && noexcept {
        return awaiter(std::move(static_cast<task<T>&>(*this)).operator co_await(), *nursery_);
    }

private:
    nursery* nursery_;
};

template <class T>
inline constexpr bool is_task<join_task<T>> = true;
template <class T>
struct kept_as<join_task<T>> {
    using type = task<T>;
};

} // namespace coil::detail
