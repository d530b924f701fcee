#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

namespace coil::detail {

/// Returns whether `error` is std::errc::operation_canceled, the error of cancelled work.
[[nodiscard]] bool is_cancellation(const std::exception_ptr& error) noexcept;

/// Returns whether `error` was thrown by a timeout() whose limit has expired.
[[nodiscard]] bool is_time_out(const std::exception_ptr& error) noexcept;

/// Terminates the program if the current thread is not the one that runs `loop`.
void check_same_loop(const event_loop* loop) noexcept;

/// The state shared by the children of one await: their number, their stop source, and the child
/// that decided the result. It is part of the awaiter and outlives the children, which are also
/// parts of the awaiter.
///
/// Everything happens on the context's thread, so counting needs no atomics. The one exception is a
/// stop request from outside: its callback may run on any thread, and only forwards the request.
class child_group : ready_node, stop_relay {
public:
    enum class decided_by : unsigned char { first_error, first_end };

    explicit child_group(decided_by what) noexcept : what_(what) {}
    child_group(const child_group&) = delete;
    child_group& operator=(const child_group&) = delete;
    /// Runs after the children were destroyed.
    ~child_group() {
        detach();
        if (loop_ != nullptr) [[unlikely]] { // destroyed before the awaiting coroutine resumed
            if (left_ == 0) {
                loop_->withdraw(static_cast<ready_node&>(*this), waiter_);
            }
            report_error();
        }
    }

    [[nodiscard]] inplace_stop_token token() const noexcept { return stop_.get_token(); }
    /// The nearest root above the await, or null if unknown.
    [[nodiscard]] promise_base* awaiting_root() const noexcept {
        return awaiting_ != nullptr ? awaiting_->root() : nullptr;
    }
    /// The task that awaits, or null if it is not a task.
    [[nodiscard]] promise_base* awaiting_task() const noexcept { return awaiting_; }
    /// The loop on which the children run.
    [[nodiscard]] event_loop& loop() const noexcept { return *loop_; }
    void stop() noexcept { stop_.request_stop(); }

    /// Called before the children of `await` are started. A stop of `outside` stops all of them.
    template <class P>
    void begin(std::coroutine_handle<P> waiter, inplace_stop_token outside,
               nested_await& await) noexcept {
        loop_ = &required_loop();
        waiter_ = waiter;
        if constexpr (std::derived_from<P, promise_base>) {
            awaiting_ = &waiter.promise();
            awaiting_->awaits(await);
        }
        relay_stop(outside, stop_);
    }
    /// Sets the limit that applies to the children. Called before they are started.
    void set_deadline(std::int64_t ns) noexcept { deadline_ns_ = ns; }
    [[nodiscard]] std::int64_t deadline() const noexcept { return deadline_ns_; }

    /// A child starts.
    void enter() noexcept { ++left_; }
    /// Called when all have been started. Returns whether one is still running.
    [[nodiscard]] bool must_wait() noexcept { return --left_ > 0; }

    /// A child has ended.
    void leave(const void* child, std::exception_ptr error) noexcept {
        check_same_loop(loop_);
        if (!is_decided() && (what_ == decided_by::first_end || error)) {
            winner_ = child;
            error_ = std::move(error);
            stop();
        } else if (error && !(expired_ && is_time_out(error))) {
            report_aside(std::move(error));
        }
        if (--left_ == 0) {
            loop_->make_ready(static_cast<ready_node&>(*this), waiter_);
        }
    }

    /// Returns whether a child has decided the result, so that those that end later are ignored.
    [[nodiscard]] bool is_decided() const noexcept { return winner_ != nullptr; }
    /// Called before the children have ended: none of their results will be used. `expired`: the
    /// reason is an expired limit. Inner limits that expire as well are then not reported.
    void finish_early(bool expired) noexcept {
        if (!is_decided()) {
            winner_ = this;
            expired_ = expired;
        }
        stop();
    }

    /// The limit of a group of one child has expired. The child's result is still used.
    void expire() noexcept {
        expired_ = true;
        stop();
    }

    /// The child that decided the result, or null.
    [[nodiscard]] const void* winner() const noexcept { return winner_; }
    [[nodiscard]] bool is_over() const noexcept { return left_ == 0; }
    [[nodiscard]] bool has_failed() const noexcept { return error_ != nullptr; }

    /// The awaiting coroutine resumes. Stop requests no longer reach the children.
    void resumed() noexcept {
        detach();
        loop_ = nullptr;
        if (awaiting_ != nullptr) {
            awaiting_->awaits_nothing();
        }
    }
    void rethrow() {
        if (error_) [[unlikely]] {
            std::rethrow_exception(coil::detail::exchange(error_, nullptr));
        }
    }
    /// Called instead of rethrow().
    void report_error() noexcept {
        if (std::exception_ptr error = coil::detail::exchange(error_, nullptr);
            error && !(expired_ && is_time_out(error))) {
            report_aside(std::move(error));
        }
    }

private:
    inplace_stop_source stop_;
    std::coroutine_handle<> waiter_;
    promise_base* awaiting_ = nullptr; // null if it is not a task
    event_loop* loop_ = nullptr;       // set from begin() to resumed()
    const void* winner_ = nullptr;
    std::exception_ptr error_;
    std::int64_t deadline_ns_ = task_owner::no_deadline;
    std::size_t left_ = 1; // the children that have not ended, plus one until must_wait()
    decided_by what_;
    bool expired_ = false;
};

} // namespace coil::detail
