#pragma once

#include <coil/base/late.hpp>
#include <coil/core/task.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

/// The slow path of an awaiter that usually completes without suspending: a task that is created
/// and awaited only if the fast path has no result. Costs the fast path one flag.
template <class T>
class late_task {
public:
    [[nodiscard]] bool is_started() const noexcept { return static_cast<bool>(started_); }
    void start(task<T>&& work) noexcept { started_.emplace(std::move(work)); }

    template <class P>
    auto await_suspend(std::coroutine_handle<P> waiter) noexcept {
        return started_->awaiter.await_suspend(waiter);
    }
    T await_resume() { return started_->awaiter.await_resume(); }

private:
    struct started {
        explicit started(task<T>&& w) noexcept
            : work(std::move(w)), awaiter(std::move(work).operator co_await()) {}

        task<T> work;
        typename task<T>::awaiter awaiter;
    };

    late<started> started_;
};

} // namespace coil::detail
