#pragma once

#include <coil/context/wait.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/detail/home.hpp>
#include <coil/exec/detail/work.hpp>

#include <coroutine>

namespace coil::detail {

/// The executor on which coroutines that suspend on this thread go on, where it is no context.
class home_executor {
public:
    /// Of an executor that owns frames: one is destroyed while its coroutine is being brought back
    /// by submit(). Waits until `w` has come, and takes it out.
    using withdrawal = void (*)(void* executor, work& w) noexcept;

    constexpr home_executor() noexcept = default;
    explicit constexpr home_executor(const executor_place& place,
                                     withdrawal take_out = nullptr) noexcept
        : place_(place), take_out_(take_out) {}

    explicit operator bool() const noexcept { return static_cast<bool>(place_.executor); }
    [[nodiscard]] const executor_place& place() const noexcept { return place_; }

    /// Any thread: a coroutine comes back. When the executor takes nothing any more, the work is
    /// dropped.
    void submit(work& w) const noexcept {
        try {
            place_.executor.submit(w);
        } catch (...) { // it was not taken
            w.drop();
        }
    }
    void take_out(work& w) const noexcept {
        if (take_out_ == nullptr) [[unlikely]] {
            end_with_misuse("a coroutine is destroyed while the executor where it goes on has it.");
        }
        take_out_(place_.executor.object(), w);
    }
    /// On the executor; or, when it has dropped it, wherever that was.
    void resume(std::coroutine_handle<> coroutine, work::fate what) const {
        const running_at scope(what == work::fate::run ? place_ : executor_place());
        detail::resume(coroutine);
    }

    /// Of this thread. A context that runs inside of the executor's work hides it.
    [[nodiscard]] static home_executor current() noexcept;

private:
    executor_place place_{};
    withdrawal take_out_ = nullptr;
};

/// While an executor runs that owns frames, or that may run inside of a context's coroutine.
class executor_scope {
public:
    explicit executor_scope(const home_executor& e) noexcept
        : home(e), at_(e.place()), outer_(innermost) {
        innermost = this;
    }
    executor_scope(const executor_scope&) = delete;
    executor_scope& operator=(const executor_scope&) = delete;
    ~executor_scope() { innermost = outer_; }

    const home_executor home;
    event_loop* const around = current_loop;

    static constinit inline thread_local const executor_scope* innermost = nullptr;

private:
    const running_at at_;
    const executor_scope* outer_;
};

/// A coroutine that a run_loop resumes in each round, whatever it waits for, while it has its turn.
constinit inline thread_local std::coroutine_handle<> resumed_each_round;

/// It would be resumed twice: by the loop, and by what it awaits.
inline void refuse_resumed_each_round(std::coroutine_handle<> waiter) noexcept {
    if (resumed_each_round && waiter == resumed_each_round) [[unlikely]] {
        end_with_misuse("a coroutine that was pushed to a run_loop awaits what resumes it by "
                        "itself. Give the loop a task instead, by spawn().");
    }
}

inline home_executor home_executor::current() noexcept {
    const executor_scope* const scope = executor_scope::innermost;
    if (scope != nullptr && scope->around == current_loop &&
        scope->home.place().executor == current_place.executor) {
        return scope->home;
    }
    return current_loop == nullptr ? home_executor(current_place) : home_executor();
}

} // namespace coil::detail
