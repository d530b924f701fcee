#pragma once

#include <coil/context/away_list.hpp>
#include <coil/context/detail/awaiter_base.hpp>
#include <coil/context/detail/current_loop.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/this_task.hpp>
#include <coil/exec/detail/errand.hpp>
#include <coil/exec/detail/home_executor.hpp>
#include <coil/exec/detail/work.hpp>

#include <concepts>
#include <coroutine>
#include <functional>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// An await of something that another thread does. The coroutine resumes where it was: on its
/// context, on the executor that runs it, or, without either, on the thread that did it.
///
/// On a context, a stop request withdraws what has not started. Elsewhere the coroutine's thread
/// could not be notified; there the stop is noticed by the thread that starts the work.
class offload_op : public awaiter_base, protected away_node {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

protected:
    explicit offload_op(away_node::status f) noexcept : away_node(f) {}
    ~offload_op() = default;

    /// Sets away_node's status functions for a Self.
    template <class Self>
    static bool is_still_away(away_node& node, request /*what*/) noexcept {
        auto& self = static_cast<Self&>(static_cast<offload_op&>(node));
        self.cancel();
        return self.pending();
    }

    /// Called before the work is submitted.
    template <class P>
    void leave(std::coroutine_handle<P> waiter) noexcept {
        leave(waiter, nearest_root(waiter));
    }

    /// Called after the work was submitted. False: it is complete. True: the coroutine suspends,
    /// and, unless it is on a context, may have resumed when this returns.
    template <class Self>
    [[nodiscard]] bool stays_away(inplace_stop_token token) noexcept {
        const bool in_context = pending();
        if (!errand_.wait()) {
            is_over();
            return false;
        }
        if (in_context) {
            go_away(current_loop->away(), root_);
            observe<Self>(token);
        }
        return true;
    }

    /// Called by the executing thread before it starts. Returns whether the result is still wanted.
    [[nodiscard]] bool is_wanted() const noexcept { return errand_.is_wanted(); }
    /// Called by the executing thread at the end; its last access.
    void come_back() noexcept;

    /// The nearest root above the await, or null.
    [[nodiscard]] const promise_base* nearest() const noexcept { return root_; }

    /// The work was not submitted after all, or the coroutine has resumed.
    void is_over() noexcept {
        away_node::come_back();
        away_ = false;
        resumed();
    }

    /// Implements Self::cancel(). `taken_back`: the work was withdrawn before it started.
    void give_up(bool taken_back) noexcept {
        if (taken_back) {
            finish();
        }
    }

    /// Called by a derived class's destructor. `bool Self::take_back() noexcept` returns true if
    /// the work had not started and was withdrawn.
    template <class Self>
    void end_away() noexcept {
        if (!away_) [[likely]] {
            return;
        }
        away_node::come_back(); // for a shutdown it counts as complete: this waits here
        if (under_way()) {
            stop_before_end();
            if (!pending()) {
                return; // it is complete, and awaiter_base removes the coroutine from the ready
                        // queue
            }
        }
        if (!static_cast<Self&>(*this).take_back()) {
            wait_until_back();
        }
    }

private:
    struct continuation : work {
        explicit continuation(offload_op* w) noexcept : work(&go_on), self(w) {}
        using work::set_owned;
        static void go_on(work& w, fate what) noexcept;
        offload_op* self;
    };

    void leave(std::coroutine_handle<> waiter, promise_base* root) noexcept;
    void stop_before_end() noexcept;
    void wait_until_back() noexcept;

    handoff errand_;
    home_executor home_;
    promise_base* root_ = nullptr; // the nearest above the await, if it is known
    continuation continuation_{this};
    bool away_ = false;
};

/// A function that is called once, with or without a stop token.
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
/// How an await stores the result: a value, an lvalue, or nothing.
template <once_callable F>
using kept_result = std::conditional_t<std::is_lvalue_reference_v<call_result<F>>, call_result<F>,
                                       std::remove_cvref_t<call_result<F>>>;

/// Why a function was not called.
enum class not_called : unsigned char { none, stopped, dropped, no_thread };

/// Throws std::errc::operation_canceled, or `error` for no_thread: "coil: NAME: reason".
[[noreturn]] void throw_not_called(const char* name, not_called why, int error);

/// A function that is called elsewhere, and its result.
template <once_callable F>
class offload_call : public offload_op {
public:
    using value_type = kept_result<F>;

    offload_call(const offload_call&) = delete;
    offload_call& operator=(const offload_call&) = delete;

    // Used by combinators when the wait is over.

    [[nodiscard]] bool has_failed() const noexcept {
        return why_ != not_called::none || outcome_.has_error();
    }
    /// The result is not wanted.
    void discard() noexcept { this->is_over(); }

protected:
    offload_call(F&& f, offload_op::status s) : offload_op(s), function_(std::move(f)) {}
    ~offload_call() = default;

    /// Returns false if a stop was requested before.
    template <class P>
    [[nodiscard]] bool begin_call(std::coroutine_handle<P> waiter,
                                  inplace_stop_token token) noexcept {
        token_ = token;
        if (token_.stop_requested()) [[unlikely]] {
            why_ = not_called::stopped;
            return false;
        }
        this->leave(waiter);
        return true;
    }

    /// Called by the executing thread; the awaiter may be destroyed when this returns.
    void call_and_come_back() noexcept {
        if (!this->is_wanted() || token_.stop_requested()) [[unlikely]] {
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
        this->come_back();
    }
    void come_back_uncalled(not_called why, int error = 0) noexcept {
        why_ = why;
        error_ = error;
        this->come_back();
    }

    /// `taken_back`: the call was withdrawn from the queue.
    void stop_call(bool taken_back) noexcept {
        if (taken_back) {
            why_ = not_called::stopped;
        }
        this->give_up(taken_back);
    }

    value_type take_outcome(const char* name) {
        this->is_over();
        if (why_ != not_called::none) [[unlikely]] {
            throw_not_called(name, why_, error_);
        }
        return outcome_.take();
    }

    [[nodiscard]] inplace_stop_token token() const noexcept { return token_; }

private:
    F function_;
    result<value_type> outcome_;
    inplace_stop_token token_;
    int error_ = 0;
    not_called why_ = not_called::none;
};

} // namespace coil::detail
