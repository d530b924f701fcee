#pragma once

#include <coil/context/detail/away_list.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/remote_op.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// Functions that are called once, without an argument or with a stop token.
template <class F>
inline constexpr bool wants_token =
    !std::is_invocable_v<F> && std::is_invocable_v<F, inplace_stop_token>;
template <class F>
concept once_callable = std::move_constructible<F> && (std::is_invocable_v<F> || wants_token<F>);

template <once_callable F>
decltype(auto) call_once(F& f, [[maybe_unused]] inplace_stop_token token) {
    if constexpr (wants_token<F>) {
        return std::invoke(std::move(f), token);
    } else {
        return std::invoke(std::move(f));
    }
}

template <once_callable F>
using call_result = decltype(call_once(std::declval<F&>(), inplace_stop_token()));
/// How an await stores the result: a value, a reference, or nothing.
template <once_callable F>
using kept_result = std::conditional_t<std::is_lvalue_reference_v<call_result<F>>, call_result<F>,
                                       std::remove_cvref_t<call_result<F>>>;

/// Why a function was not called.
enum class not_called : unsigned char { none, stopped, dropped, no_thread };

/// Throws std::errc::operation_canceled, or `error` for no_thread: "coil: NAME: reason".
[[noreturn]] void throw_not_called(const char* name, not_called why, int error);

/// An await of a function that another thread calls, and its result. A stop request on any thread
/// withdraws a function that has not started.
///
/// `Self` is the derived class, which has
/// - `void submit()`: submits the call; the executing thread calls run_call() or refuse_call(),
///   once, unless the call was withdrawn;
/// - `bool withdraw() noexcept`: called on any thread, after submit(), by one thread at a time and
///   perhaps repeatedly. Returns true, at most once, if the call had not started; it then never
///   starts;
/// - `name`, for errors;
/// and whose destructor calls end_call().
template <class Self, once_callable F>
class offload_call : protected remote_op, away_node {
public:
    using value_type = kept_result<F>;

    offload_call(const offload_call&) = delete;
    offload_call& operator=(const offload_call&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        token_ = stop_token_of(waiter);
        if (token_.stop_requested()) [[unlikely]] {
            why_ = not_called::stopped;
            return false;
        }
        refuse_resumed_each_round(waiter);
        begin(waiter, nearest_root(waiter));
        try {
            self().submit();
        } catch (...) { // it was not submitted
            end();
            throw;
        }
        if (token_.stop_possible()) {
            on_stop_.emplace(token_, stopper{*this});
        }
        event_loop* const loop = target().loop;
        if (!suspend()) {
            end();
            return false;
        }
        if (loop != nullptr) {
            set_away_node(*this);
            go_away(loop->tasks().away(), nearest());
        }
        return true;
    }

    value_type await_resume() {
        leave();
        if (why_ != not_called::none) [[unlikely]] {
            throw_not_called(Self::name, why_, error_);
        }
        return outcome_.take();
    }

    // Used by combinators when the wait is over.

    [[nodiscard]] bool has_failed() const noexcept {
        return why_ != not_called::none || outcome_.has_error();
    }
    /// Called if the result is not needed.
    void discard() noexcept {
        leave();
        if (why_ == not_called::none && outcome_.has_error()) {
            report_aside(outcome_.error());
        }
    }

protected:
    // NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): final classes derive from it
    explicit offload_call(F&& f) : away_node(&is_still_away), function_(std::move(f)) {}
    ~offload_call() = default;

    // Called by the executing thread; the awaiter may be destroyed when these return.

    void run_call() noexcept {
        if (!is_wanted() || token_.stop_requested()) [[unlikely]] {
            why_ = not_called::stopped;
        } else {
            try {
                if constexpr (std::is_void_v<value_type>) {
                    call_once(function_, token_);
                    outcome_.set_value();
                } else {
                    outcome_.set_value(call_once(function_, token_));
                }
            } catch (...) {
                outcome_.set_error(std::current_exception());
            }
        }
        complete();
    }
    void refuse_call(not_called why, int error = 0) noexcept {
        why_ = why;
        error_ = error;
        complete();
    }

    void end_call() noexcept {
        on_stop_.reset(); // waits for the stopper
        if (!is_elsewhere()) [[likely]] {
            return;
        }
        require_own_thread();
        come_back(); // a shutdown need not wait for this node: this destructor waits
        if (try_withdraw()) {
            end();
        } else {
            block_until_complete();
        }
    }

private:
    struct stopper {
        offload_call& call;
        void operator()() const noexcept {
            if (call.try_withdraw()) {
                call.refuse_call(not_called::stopped);
            }
        }
    };

    void leave() noexcept {
        on_stop_.reset();
        come_back();
        end();
    }
    [[nodiscard]] Self& self() noexcept { return static_cast<Self&>(*this); }
    [[nodiscard]] bool try_withdraw() noexcept { return is_pending() && self().withdraw(); }

    static bool is_still_away(away_node& node, request /*what*/) noexcept {
        auto& call = static_cast<offload_call&>(node);
        call.on_stop_.reset(); // waits for the stopper
        if (call.try_withdraw()) {
            call.refuse_call(not_called::stopped);
        }
        return call.is_elsewhere();
    }

    F function_;
    result<value_type> outcome_;
    inplace_stop_token token_;
    std::optional<inplace_stop_callback<stopper>> on_stop_;
    int error_ = 0;
    not_called why_ = not_called::none;
};

} // namespace coil::detail
