#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/core/transfer.hpp>
#include <coil/exec/detail/home.hpp>
#include <coil/exec/detail/work.hpp>

#include <coroutine>

namespace coil::detail {

/// The executor on which coroutines that suspend on this thread resume, if the thread runs no
/// context.
class home_executor {
public:
    /// For executors that own frames: a frame is destroyed while submit() is bringing its coroutine
    /// back. Waits until `w` has arrived and removes it.
    using withdrawal = void (*)(void* executor, work& w) noexcept;

    constexpr home_executor() noexcept = default;
    explicit constexpr home_executor(const executor_place& place,
                                     withdrawal take_out = nullptr) noexcept
        : place_(place), take_out_(take_out) {}

    explicit operator bool() const noexcept { return static_cast<bool>(place_.executor); }
    [[nodiscard]] const executor_place& place() const noexcept { return place_; }

    /// May be called from any thread when a coroutine comes back. If the executor was shut down,
    /// the work is dropped.
    void submit(work& w) const noexcept {
        try {
            place_.executor.submit(w);
        } catch (...) { // it was not submitted
            w.drop();
        }
    }
    void take_out(work& w) const noexcept {
        if (take_out_ == nullptr) [[unlikely]] {
            end_with_misuse(
                "a coroutine is destroyed while the executor that resumes it has it queued.");
        }
        take_out_(place_.executor.object(), w);
    }
    /// Resumes it on the executor; after a drop, on the current thread.
    void resume(std::coroutine_handle<> coroutine, work::fate what) const {
        const running_at scope(what == work::fate::run ? place_ : executor_place());
        detail::resume(coroutine);
    }

    /// The executor of this thread. A context that runs inside of the executor's work hides it.
    [[nodiscard]] static home_executor current() noexcept;

private:
    executor_place place_{};
    withdrawal take_out_ = nullptr;
};

/// Exists while an executor runs that owns frames or that may run inside of a context's coroutine.
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

/// During its turn: the coroutine that a run_loop resumes in each round, whatever it awaits.
constinit inline thread_local std::coroutine_handle<> resumed_each_round;

/// It would be resumed twice: by the loop and by what it awaits.
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
