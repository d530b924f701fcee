#pragma once

#include <coil/base/exchange.hpp>
#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/child_group.hpp>
#include <coil/compose/detail/children.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Awaits and discards the result: descriptors are closed.
template <class Kept>
class discarded_await {
    using awaiter_t = awaiter_of<Kept&&>;

public:
    explicit discarded_await(std::remove_reference_t<Kept>& awaitable)
        : awaiter_(get_awaiter(static_cast<Kept&&>(awaitable))) {}

    bool await_ready() {
        expect_discard(awaiter_);
        return awaiter_.await_ready();
    }
    template <class P>
    auto await_suspend(std::coroutine_handle<P> waiter) {
        return awaiter_.await_suspend(waiter);
    }
    void await_resume() {
        if constexpr (knows_failure<std::remove_reference_t<awaiter_t>>) {
            if (awaiter_.has_failed()) {
                static_cast<void>(awaiter_.await_resume());
                return;
            }
        }
        if constexpr (requires { awaiter_.discard(); }) {
            awaiter_.discard();
        } else {
            static_cast<void>(awaiter_.await_resume());
        }
    }

private:
    awaiter_t awaiter_;
};

template <class Kept>
task<> await_and_discard(Kept awaitable) {
    if constexpr (is_join_handle<std::remove_cvref_t<Kept>>) {
        const relayed_stop canceller(co_await this_task::stop_token(), stop_source_of(awaitable));
        co_await discarded_await<Kept>(awaitable);
    } else {
        co_await discarded_await<Kept>(awaitable);
    }
}

/// A join_handle passed to a scope. When it is destroyed, its task is asked to stop, even if the
/// child that awaits it has not started.
template <class T>
class sole_handle {
public:
    explicit sole_handle(join_handle<T>&& handle) noexcept : handle_(std::move(handle)) {}
    sole_handle(sole_handle&& other) noexcept
        : handle_(std::move(other.handle_)), mine_(coil::detail::exchange(other.mine_, false)) {}
    sole_handle& operator=(sole_handle&&) = delete;
    ~sole_handle() {
        if (mine_) {
            handle_.cancel();
        }
    }

    [[nodiscard]] join_handle<T>& get() noexcept { return handle_; }

private:
    join_handle<T> handle_;
    bool mine_ = true;
};

template <class T>
task<> join_and_discard(sole_handle<T> handle) {
    const relayed_stop canceller(co_await this_task::stop_token(), stop_source_of(handle.get()));
    co_await discarded_await<join_handle<T>>(handle.get());
}

} // namespace coil::detail
