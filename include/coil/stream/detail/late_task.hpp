#pragma once

#include <coil/core/task.hpp>

#include <coroutine>
#include <optional>
#include <utility>

namespace coil::detail {

/// The slow half of an await that is usually over at once: a task that is only made, and awaited,
/// when the fast half has failed.
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

    /// The awaiter in its place, without a move.
    struct make_awaiter {
        task<T>& work;
        operator awaiter() const noexcept { return std::move(work).operator co_await(); }
    };

    std::optional<task<T>> task_;
    std::optional<awaiter> awaiter_;
};

} // namespace coil::detail
