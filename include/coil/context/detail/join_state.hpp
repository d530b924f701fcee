#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/join_handshake.hpp>
#include <coil/context/detail/task_name.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/frame_tree.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <coroutine>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Passes the exception to the handler of the current context; without one, prints it to stderr.
/// The message says what is known of the task: its name, or else its function, and where it was
/// spawned.
void report_unhandled(std::exception_ptr error, task_label task = {}) noexcept;

/// A base class, so that it is constructed before task_owner, which needs its token.
struct join_stop {
    inplace_stop_source stop_;
};

/// The state shared by a spawned task and its join_handle; the second of the two to release it
/// destroys it.
class join_state_base : join_stop, public task_owner {
public:
    join_state_base(const join_state_base&) = delete;
    join_state_base& operator=(const join_state_base&) = delete;

    void cancel() noexcept { stop_.request_stop(); }
    [[nodiscard]] inplace_stop_source& stop_source() noexcept { return stop_; }

    [[nodiscard]] bool done() const noexcept { return handshake_.done(); }
    /// Blocks the calling thread until the task is done. Reports once on stderr if no thread of the
    /// process runs its context.
    void wait_blocking() noexcept;

    struct waiter {
        void (*notify)(waiter&) noexcept;
    };
    /// Returns false if the task is done or has a waiter already; then there will be no
    /// notification.
    [[nodiscard]] bool register_waiter(waiter& w) noexcept;
    /// Returns false if the notification is already on its way.
    [[nodiscard]] bool withdraw_waiter(waiter& w) noexcept;

protected:
    join_state_base() noexcept : task_owner(stop_.get_token(), false) {}
    ~join_state_base() = default;

    void mark_done() noexcept;
    /// Returns true for the second of the two owners.
    [[nodiscard]] bool release_one() noexcept { return handshake_.release_one(); }

private:
    void report_never_run() const noexcept;

    basic_join_handshake<waiter> handshake_;
};

template <class T>
class plain_join_state;
template <class T>
class named_join_state;

/// Either a plain_join_state or a named_join_state.
template <class T>
class join_state : public join_state_base, public frame_allocated {
public:
    void watch(std::coroutine_handle<task_promise<T>> coroutine) noexcept {
        coroutine_ = coroutine;
    }

    void finished(promise_base& root) noexcept final {
        end_task(root);
        take_outcome();
        const void* const function = ended_function(coroutine_.address());
        {
#if COIL_ASSERTIONS
            const destroying_frames here;
#endif
            coroutine_.destroy();
        }
        function_ = function;
        end();
    }

    void abandoned(promise_base&) noexcept final {
        destroy_tree(coroutine_);
        outcome_.set_error(std::make_exception_ptr(
            std::system_error(std::make_error_code(std::errc::operation_canceled),
                              "coil: the task's context stopped")));
        abandoned_ = true;
        end();
    }

    T take() {
        if (coil::detail::exchange(taken_, true)) {
            throw std::logic_error("coil: the result of this join_handle was taken already");
        }
        return outcome_.take();
    }

    /// Called when the task is done. Returns whether take() will throw.
    [[nodiscard]] bool has_failed() const noexcept { return taken_ || outcome_.has_error(); }
    /// For messages. Called when the task is done.
    [[nodiscard]] task_label label() const noexcept {
        return {this->name(), this->spawned_at(), function_};
    }

    /// The handle releases the state.
    void drop() noexcept {
        if (release_one()) {
            if (!taken_ && !abandoned_ && outcome_.error()) {
                report_unhandled(outcome_.error(), label());
            }
            destroy();
        }
    }

protected:
    explicit join_state(bool is_named) noexcept : function_(nullptr), is_named_(is_named) {}
    ~join_state() = default;

private:
    void destroy() noexcept {
        if (is_named_) [[unlikely]] {
            delete static_cast<named_join_state<T>*>(this);
        } else {
            delete static_cast<plain_join_state<T>*>(this);
        }
    }
    void take_outcome() noexcept {
        if constexpr (std::is_void_v<T> || std::is_reference_v<T>) {
            outcome_.move_from(coroutine_.promise().outcome);
        } else {
            try {
                outcome_.move_from(coroutine_.promise().outcome);
            } catch (...) {
                outcome_.set_error(std::current_exception());
            }
        }
    }

    /// The task releases the state.
    void end() noexcept {
        mark_done();
        if (release_one()) {
            if (!abandoned_ && outcome_.error()) {
                report_unhandled(outcome_.error(), label());
            }
            destroy();
        }
    }

    union {
        std::coroutine_handle<task_promise<T>> coroutine_;
        const void* function_; // of the coroutine, when it has ended
    };
    result<T> outcome_;
    bool taken_ = false;
    bool abandoned_ = false;
    const bool is_named_;
};

template <class T>
class plain_join_state final : public join_state<T> {
public:
    plain_join_state() noexcept : join_state<T>(false) {}
};

template <class T>
class named_join_state final : public join_state<T> {
public:
    explicit named_join_state(task_name&& name) : join_state<T>(true), name_(std::move(name)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return name_.text; }
    [[nodiscard]] const std::source_location* spawned_at() const noexcept override {
        return &name_.spawned_at;
    }
    [[nodiscard]] std::int64_t spawned_ns() const noexcept override { return name_.spawned_ns; }

private:
    task_name name_;
};

} // namespace coil::detail
