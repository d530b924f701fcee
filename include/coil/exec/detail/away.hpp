#pragma once

#include <coil/context/away_list.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>
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

/// An await of something that is done elsewhere. The coroutine goes on where it was: on its
/// context, on the executor that runs it, or, when there is neither, on the thread that did it.
///
/// On a context a stop request takes back what has not begun. Elsewhere nobody could tell the
/// coroutine's thread: there a stop is seen by whoever begins.
class away_wait : public wait_base, protected away_node {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

protected:
    explicit away_wait(away_node::status f) noexcept : away_node(f) {}
    ~away_wait() = default;

    /// away_node's status, for a Self.
    template <class Self>
    static bool is_still_away(away_node& node, request /*what*/) noexcept {
        auto& self = static_cast<Self&>(static_cast<away_wait&>(node));
        self.cancel();
        return self.pending();
    }

    /// Before it is given away.
    template <class P>
    void leave(std::coroutine_handle<P> waiter) noexcept {
        leave(waiter, nearest_root(waiter));
    }

    /// After it was given away. False: it is back. True: the coroutine suspends, and may have gone
    /// on when this returns, unless it is on a context.
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

    /// By whoever does it, before: whether somebody still waits for it.
    [[nodiscard]] bool is_wanted() const noexcept { return errand_.is_wanted(); }
    /// By whoever did it; the last that it does here.
    void come_back() noexcept;

    /// It was not given away after all, or the coroutine has gone on.
    void is_over() noexcept {
        away_node::come_back();
        away_ = false;
        resumed();
    }

    /// Self::cancel(): `taken_back` says that it has not begun and will not.
    void give_up(bool taken_back) noexcept {
        if (taken_back) {
            finish();
        }
    }

    /// A derived class's destructor. `bool Self::take_back() noexcept`: true when it has not begun
    /// and will not.
    template <class Self>
    void end_away() noexcept {
        if (!away_) [[likely]] {
            return;
        }
        away_node::come_back(); // as far as a shutdown is concerned: this waits here
        if (under_way()) {
            stop_before_end();
            if (!pending()) {
                return; // it has come, and wait_base takes the coroutine out of the ready queue
            }
        }
        if (!static_cast<Self&>(*this).take_back()) {
            wait_until_back();
        }
    }

private:
    struct continuation : work {
        explicit continuation(away_wait* w) noexcept : work(&go_on), self(w) {}
        using work::set_owned;
        static void go_on(work& w, fate what) noexcept;
        away_wait* self;
    };

    void leave(std::coroutine_handle<> waiter, promise_base* root) noexcept;
    void stop_before_end() noexcept;
    void wait_until_back() noexcept;

    errand errand_;
    home_executor home_;
    promise_base* root_ = nullptr; // the nearest above the await, if it is known
    continuation continuation_{this};
    bool away_ = false;
};

/// How a function is called that is called once, and maybe gets a stop token.
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
/// What an await gives that has to keep it: a value, an lvalue, or nothing.
template <once_callable F>
using kept_result = std::conditional_t<std::is_lvalue_reference_v<call_result<F>>, call_result<F>,
                                       std::remove_cvref_t<call_result<F>>>;

/// Why a function was not called.
enum class not_called : unsigned char { none, stopped, dropped, no_thread };

/// std::errc::operation_canceled, or for no_thread `error`: "coil: NAME: why".
[[noreturn]] void throw_not_called(const char* name, not_called why, int error);

/// A function that is called elsewhere, and what came of it.
template <once_callable F>
class away_call : public away_wait {
public:
    using value_type = kept_result<F>;

    away_call(const away_call&) = delete;
    away_call& operator=(const away_call&) = delete;

    // For code that combines awaits, when the wait is over.

    [[nodiscard]] bool has_failed() const noexcept {
        return why_ != not_called::none || outcome_.has_error();
    }
    /// Nobody wants what it has.
    void discard() noexcept { this->is_over(); }

protected:
    away_call(F&& f, away_wait::status s) : away_wait(s), function_(std::move(f)) {}
    ~away_call() = default;

    /// False: a stop was requested before.
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

    /// The thread that does it; the awaiter may be gone when this returns.
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

    /// It was queued, and is no more: `taken_back`.
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
