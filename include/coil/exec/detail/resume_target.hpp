#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/exec/detail/executor_ref.hpp>

#include <coroutine>

namespace coil::detail {

/// Exists while a coroutine of an executor runs on this thread.
class running_at {
public:
    explicit running_at(const executor_place& place) noexcept
        : outer_(coil::detail::exchange(current_place, place)) {}
    running_at(const running_at&) = delete;
    running_at& operator=(const running_at&) = delete;
    ~running_at() { current_place = outer_; }

private:
    const executor_place outer_;
};

/// Exists while an executor that owns frames runs, perhaps inside of a context's coroutine.
class executor_scope {
public:
    explicit executor_scope(executor_ref executor) noexcept
        : executor_(executor), at_({executor, nullptr}),
          outer_(coil::detail::exchange(innermost, this)) {}
    executor_scope(const executor_scope&) = delete;
    executor_scope& operator=(const executor_scope&) = delete;
    ~executor_scope() { innermost = outer_; }

    /// Whether the innermost of these executors runs the current code. Returns false in a context
    /// that runs inside of the executor's work.
    [[nodiscard]] static bool is_here() noexcept {
        return innermost != nullptr && innermost->around_ == current_loop &&
               innermost->executor_ == current_place.executor;
    }

private:
    friend struct executor_variables;

    static constinit inline thread_local const executor_scope* innermost = nullptr;

    const executor_ref executor_;
    event_loop* const around_ = current_loop;
    const running_at at_;
    const executor_scope* outer_;
};

/// Where a coroutine resumes when its wait is over: on a context, on an executor, or, without
/// either, on the thread that ends the wait.
struct resume_target {
    event_loop* loop = nullptr;
    executor_place place{};
    /// The executor is an executor_scope's: even on a context's thread it resumes its coroutines
    /// itself.
    bool scoped = false;

    /// The target of the coroutine that runs here.
    [[nodiscard]] static resume_target here() noexcept {
        if (executor_scope::is_here()) {
            return {nullptr, current_place, true};
        }
        return current_loop != nullptr ? resume_target{current_loop}
                                       : resume_target{nullptr, current_place};
    }
};

/// The coroutine whose turn a run_loop is running, if the loop resumes it in each round, whatever
/// it awaits; otherwise null.
constinit inline thread_local std::coroutine_handle<> resumed_each_round;

/// Refuses such a coroutine, which would be resumed twice: by the loop and by the completion of its
/// await.
inline void refuse_resumed_each_round(std::coroutine_handle<> waiter) noexcept {
    if (resumed_each_round && waiter == resumed_each_round) [[unlikely]] {
        end_with_misuse("a coroutine that was pushed to a run_loop awaits something that also "
                        "resumes it. Give the loop a task instead, by spawn().");
    }
}

} // namespace coil::detail
