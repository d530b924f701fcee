#pragma once

#include <coil/core/frame_allocator.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/away.hpp>
#include <coil/exec/executor.hpp>

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// The way of a coroutine through its own loop: to be resumed in a later turn.
class later_turn : work {
public:
    later_turn(const later_turn&) = delete;
    later_turn& operator=(const later_turn&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

protected:
    later_turn() noexcept : work(&go_on) {}
    ~later_turn() {
        if (place_ != place::nowhere) [[unlikely]] {
            take_out();
        }
    }

    void pass(std::coroutine_handle<> waiter, promise_base* root) noexcept;
    /// The coroutine has gone on. False: what should have run it has ended.
    [[nodiscard]] bool has_passed() noexcept {
        place_ = place::nowhere;
        return !dropped_;
    }

private:
    enum class place : unsigned char { nowhere, inbox, ready_queue, executor };

    static void go_on(work& w, fate what) noexcept;
    void take_out() noexcept;

    std::coroutine_handle<> waiter_;
    event_loop* loop_ = nullptr;
    home_executor home_;
    promise_base* root_ = nullptr;
    place place_ = place::nowhere;
    bool dropped_ = false;
};

template <class F>
class later_call final : public later_turn {
public:
    explicit later_call(F&& f) : function_(std::move(f)) {}

    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        token_ = stop_token_of(waiter);
        this->pass(waiter, root_of(waiter));
    }
    call_result<F> await_resume() {
        if (!this->has_passed()) [[unlikely]] {
            throw_not_called("asyncify", not_called::dropped, 0);
        }
        if (token_.stop_requested()) [[unlikely]] {
            throw_not_called("asyncify", not_called::stopped, 0);
        }
        return call_once(function_, token_);
    }

private:
    F function_;
    inplace_stop_token token_;
};

/// An executor knows no way to take something back, so what it gets must not be a part of the
/// awaiter: it belongs to whoever comes second to its claim.
template <class Awaiter>
class executor_call final : public work, public frame_allocated {
public:
    explicit executor_call(Awaiter& awaiter) noexcept : work(&finish), awaiter_(awaiter) {}
    ~executor_call() = default;

    /// The awaiter's. True: the executor will not touch the awaiter, and deletes this.
    [[nodiscard]] bool take_back() noexcept { return claim_.take(); }

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<executor_call*>(&w);
        if (self->claim_.take()) {
            self->awaiter_.finish(what); // and this may be gone
        } else {
            delete self;
        }
    }

    Awaiter& awaiter_;
    claim claim_;
};

template <class F, class E>
class asyncify_awaiter final : public away_call<F> {
public:
    asyncify_awaiter(F&& f, E& executor)
        : away_call<F>(std::move(f), &away_wait::is_still_away<asyncify_awaiter>),
          executor_(executor) {}
    asyncify_awaiter(const asyncify_awaiter&) = delete;
    asyncify_awaiter& operator=(const asyncify_awaiter&) = delete;
    ~asyncify_awaiter() {
        on_stop_.reset();
        this->template end_away<asyncify_awaiter>();
        delete call_;
    }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        const inplace_stop_token token = stop_token_of(waiter);
        if (!this->begin_call(waiter, token)) {
            return false;
        }
        executor_call<asyncify_awaiter>* call = nullptr;
        try {
            call_ = call = new executor_call<asyncify_awaiter>(*this);
            if (!this->pending()) { // not on a context, where stays_away() does it
                on_stop_.emplace(token, taker{*this});
            }
            submit_to(executor_, *call);
        } catch (...) { // it was not taken
            on_stop_.reset();
            if (call_ == nullptr) {
                delete call;
            }
            this->is_over();
            throw;
        }
        return this->template stays_away<asyncify_awaiter>(token);
    }

    typename away_call<F>::value_type await_resume() {
        on_stop_.reset();
        return this->take_outcome("asyncify");
    }

    /// The executor.
    void finish(work::fate what) noexcept {
        if (what == work::fate::run) {
            this->call_and_come_back();
        } else {
            this->come_back_uncalled(not_called::dropped);
        }
    }

private:
    friend class wait_base;
    friend class away_wait;

    [[nodiscard]] bool take_back() noexcept {
        const bool mine = call_->take_back();
        if (mine) {
            call_ = nullptr; // the executor's
        }
        return mine;
    }
    void cancel() noexcept { this->stop_call(this->pending() && take_back()); }

    /// On an executor a stop request takes back what has not begun, on whatever thread it is made.
    struct taker {
        asyncify_awaiter& self;
        void operator()() const noexcept {
            if (self.take_back()) {
                self.come_back_uncalled(not_called::stopped);
            }
        }
    };

    E& executor_;
    executor_call<asyncify_awaiter>* call_ = nullptr;
    std::optional<inplace_stop_callback<taker>> on_stop_;
};

template <class F>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] later_function {
public:
    explicit later_function(F&& f) : function_(std::move(f)) {}

    [[nodiscard]] later_call<F> operator co_await() && {
        return later_call<F>(std::move(function_));
    }
    template <class Self = F>
    later_call<F> operator co_await() & {
        static_assert(always_false<Self>, "asyncify(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return later_call<F>(std::move(function_));
    }

private:
    F function_;
};

template <class F, class E>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] executor_function {
public:
    executor_function(F&& f, E&& executor)
        : function_(std::move(f)), executor_(std::forward<E>(executor)) {}

    using awaiter = asyncify_awaiter<F, std::remove_reference_t<E>>;

    [[nodiscard]] awaiter operator co_await() && {
        return awaiter(std::move(function_), executor_);
    }
    template <class Self = F>
    awaiter operator co_await() & {
        static_assert(always_false<Self>, "asyncify(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return awaiter(std::move(function_), executor_);
    }

private:
    F function_;
    E executor_; // a reference, or what was a temporary
};

} // namespace detail

/// Calls `f` in a later turn of this loop, and gives what it gave:
///
///     const auto part = co_await asyncify([&] { return compress(block); });
///
/// Before it, everybody who is ready has a turn, and the loop has looked at timers, at completions
/// and at what other threads have left for it: a long computation in pieces, each asyncify'd, does
/// not keep the others waiting for longer than a piece takes.
///
/// `f` is anything that can be called with nothing, or with an inplace_stop_token, the awaiting
/// task's. It is moved into the await and called once, as an rvalue; nothing is allocated. What it
/// returns comes out of the await, whatever it is, and so does any exception.
///
/// Threading: on this context's thread, or on that of the executor that runs the coroutine (a
/// run_loop). Cancellation: when a stop was requested before `f` is called, it is not, and the
/// await throws std::system_error with std::errc::operation_canceled.
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::later_function<std::decay_t<F>> asyncify(F&& f) {
    return detail::later_function<std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}

/// Calls `f` on an executor, and goes on here with what it gave. `f` and what becomes of it are as
/// with blocking(f); the executor's queue takes one small allocation. An executor that was named
/// must outlive the await, a temporary is kept.
///
/// Threading: `f` runs where `executor` decides; the coroutine goes on where it was, see
/// blocking().
///
/// Cancellation: when a stop is requested before `f` has begun, it is not called, and the await
/// throws std::system_error with std::errc::operation_canceled, on a context at once; so it does
/// when the executor drops it. Once `f` has begun it is waited for. A context that shuts down waits
/// for it, blocking its thread, and takes back what has not begun.
template <class F, class E>
    requires detail::once_callable<std::decay_t<F>> && executor<std::remove_reference_t<E>>
detail::executor_function<std::decay_t<F>, E> asyncify(F&& f, E&& executor) {
    return {std::decay_t<F>(std::forward<F>(f)), std::forward<E>(executor)};
}

} // namespace coil
