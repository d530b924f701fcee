#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/away_list.hpp>
#include <coil/context/detail/claim_once.hpp>
#include <coil/core/detail/frame_allocator.hpp>
#include <coil/core/detail/result.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/remote_op.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

namespace coil::detail {

template <class T, class Initiate, class Cancel>
class callback_awaiter;

/// Why a callback's await has no result.
enum class no_result : unsigned char { none, stop_requested, stopped, dropped };

[[noreturn]] void throw_no_result(no_result why);
[[noreturn]] void end_used_completion() noexcept;
[[nodiscard]] std::exception_ptr exception_of_callback(std::error_code error) noexcept;

template <class T>
class callback_state;

/// A suspended await of a callback, and its result. The derived class calls start() and end_call().
template <class T>
class callback_op : protected remote_op, away_node {
public:
    callback_op(const callback_op&) = delete;
    callback_op& operator=(const callback_op&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    T await_resume() {
        discard();
        if (initiate_error_) [[unlikely]] {
            std::rethrow_exception(coil::detail::exchange(initiate_error_, nullptr));
        }
        if (why_ != no_result::none) [[unlikely]] {
            throw_no_result(why_);
        }
        return outcome_.take();
    }

    // Used by combinators when the wait is over.

    [[nodiscard]] bool has_failed() const noexcept {
        return why_ != no_result::none || initiate_error_ || outcome_.has_error();
    }
    void discard() noexcept {
        on_stop_.reset(); // waits for a stopper that is running
        come_back();
        end();
    }

protected:
    /// Calls the program's cancel function, at most once. Null: there is none.
    using cancel_function = void (*)(callback_op&) noexcept;

    explicit callback_op(cancel_function f) noexcept
        : away_node(&is_still_away), cancel_function_(f) {}
    ~callback_op() = default;

    /// Returns false without an effect if a stop has been requested.
    template <class P>
    [[nodiscard]] bool start(std::coroutine_handle<P> waiter) {
        token_ = stop_token_of(waiter);
        if (token_.stop_requested()) [[unlikely]] {
            why_ = no_result::stop_requested;
            return false;
        }
        refuse_resumed_each_round(waiter);
        state_ = new callback_state<T>(*this);
        begin(waiter, nearest_root(waiter));
        return true;
    }
    [[nodiscard]] callback_state<T>* state() const noexcept { return state_; }
    /// The initiating function has thrown. Its completion may still exist, or be in use on another
    /// thread; in that case the await continues until that use has ended.
    void initiate_failed(std::exception_ptr error) noexcept {
        initiate_error_ = std::move(error);
        if (try_withdraw()) {
            complete();
        }
    }
    /// Called after the initiating function. Returns whether the coroutine suspends.
    [[nodiscard]] bool suspend_call() noexcept {
        if (token_.stop_possible()) {
            on_stop_.emplace(token_, stopper{*this});
        }
        event_loop* const loop = target().loop;
        if (!suspend()) {
            end();
            return false;
        }
        if (loop != nullptr) { // otherwise this may have been destroyed
            set_away_node(*this);
            go_away(loop->tasks().away(), nearest());
        }
        return true;
    }
    void end_call() noexcept {
        on_stop_.reset(); // waits for a stopper that is running
        if (is_elsewhere()) [[unlikely]] {
            require_own_thread();
            come_back(); // a shutdown need not wait for this node: this destructor waits
            cancel();
            if (try_withdraw()) {
                end();
            } else if (is_elsewhere()) {
                block_until_complete();
            }
        }
        delete state_;
    }

private:
    friend callback_state<T>;

    struct stopper {
        callback_op& op;
        void operator()() const noexcept {
            if (op.cancel_function_ != nullptr) {
                op.cancel(); // may end the await and destroy the op
            } else {
                op.withdraw_stopped();
            }
        }
    };

    void cancel() noexcept {
        if (cancel_function_ != nullptr && is_pending()) {
            cancel_function_(*this);
        }
    }
    /// Returns true if the completion can no longer access this object. The completion then owns
    /// the state and deletes it. Called by the stopper, or when no stopper can run.
    [[nodiscard]] bool try_withdraw() noexcept {
        if (!is_pending() || state_ == nullptr || !state_->withdraw()) {
            return false;
        }
        state_ = nullptr;
        return true;
    }
    /// Ends the await, unless its completion was used. May destroy this.
    void withdraw_stopped() noexcept {
        if (try_withdraw()) {
            why_ = no_result::stop_requested;
            complete();
        }
    }
    static bool is_still_away(away_node& node, request /*what*/) noexcept {
        auto& op = static_cast<callback_op&>(node);
        op.on_stop_.reset(); // waits for a stopper that is running
        op.cancel();
        op.withdraw_stopped();
        return op.is_elsewhere();
    }

    const cancel_function cancel_function_;
    callback_state<T>* state_ = nullptr;
    result<T> outcome_;
    std::exception_ptr initiate_error_;
    inplace_stop_token token_;
    std::optional<inplace_stop_callback<stopper>> on_stop_;
    no_result why_ = no_result::none;
};

/// The state shared by a completion and its await. The completion claims the state when it is used
/// or destroyed; the await claims it to withdraw. The second of the two deletes it: the completion
/// when it is used or destroyed, or the await when it ends.
template <class T>
class callback_state final : public frame_allocated {
public:
    explicit callback_state(callback_op<T>& op) noexcept : op_(op) {}

    [[nodiscard]] bool withdraw() noexcept { return claim_.claim(); }

    template <class... Args>
    static void set_value(callback_state* self, Args&&... args) noexcept {
        finish(self, [&](callback_op<T>& op) noexcept {
            try {
                op.outcome_.set_value(std::forward<Args>(args)...);
            } catch (...) {
                op.outcome_.set_error(std::current_exception());
            }
        });
    }
    static void set_error(callback_state* self, std::exception_ptr error) noexcept {
        finish(self, [&](callback_op<T>& op) noexcept { op.outcome_.set_error(std::move(error)); });
    }
    static void stop(callback_state* self, bool dropped) noexcept {
        finish(self, [&](callback_op<T>& op) noexcept {
            op.why_ = dropped ? no_result::dropped : no_result::stopped;
        });
    }

private:
    /// After a successful claim, the await cannot end, and its destructor cannot return, before
    /// complete() is called.
    template <class F>
    static void finish(callback_state* self, F set) noexcept {
        if (self->claim_.claim()) {
            callback_op<T>& op = self->op_;
            set(op);
            op.complete(); // may destroy the op, and the state with it
        } else {
            delete self;
        }
    }

    callback_op<T>& op_;
    claim_once claim_;
};

} // namespace coil::detail
