#pragma once

#include <coil/core/task.hpp>

#include <coroutine>
#include <optional>
#include <utility>

namespace coil::detail {

/// The slow path of an awaiter that usually completes without suspending: a task that is created
/// and awaited only if the fast path has no result.
template <class T>
class late_task {
public:
    void start(task<T>&& work) {
        task_.emplace(std::move(work));
        awaiter_.emplace(make_awaiter{*task_});
    }

    template <class P>
    auto await_suspend(std::coroutine_handle<P> waiter) noexcept {
        return awaiter_->await_suspend(waiter);
    }
    T await_resume() { return awaiter_->await_resume(); }

private:
    using awaiter = typename task<T>::awaiter;

    /// Constructs the awaiter in place, without a move.
    struct make_awaiter {
        task<T>& work;
        operator awaiter() const noexcept { return std::move(work).operator co_await(); }
    };

    std::optional<task<T>> task_;
    std::optional<awaiter> awaiter_;
};

} // namespace coil::detail
