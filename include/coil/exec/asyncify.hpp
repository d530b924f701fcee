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

/// The await of a later iteration of the coroutine's own loop.
class requeue_op : work {
public:
    requeue_op(const requeue_op&) = delete;
    requeue_op& operator=(const requeue_op&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

protected:
    requeue_op() noexcept : work(&go_on) {}
    ~requeue_op() {
        if (place_ != place::nowhere) [[unlikely]] {
            take_out();
        }
    }

    void pass(std::coroutine_handle<> waiter, promise_base* root) noexcept;
    /// The coroutine has resumed. Returns false if the executor that should have resumed it was
    /// shut down.
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
class later_call final : public requeue_op {
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

/// Executors cannot withdraw a submitted function, so it must not be part of the awaiter: it is a
/// separate object, deleted by the second of the two that claim it.
template <class Awaiter>
class executor_call final : public awaited_work, public frame_allocated {
public:
    explicit executor_call(Awaiter& awaiter) noexcept
        : awaited_work(&finish, &is_not_wanted), awaiter_(awaiter) {}
    ~executor_call() = default;

    /// Called by the awaiter. Returns true if the executor will not access the awaiter; it then
    /// deletes this.
    [[nodiscard]] bool take_back() noexcept { return claim_.take(); }

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<executor_call*>(&w);
        if (self->claim_.take()) {
            self->awaiter_.finish(what); // may destroy this
        } else {
            delete self;
        }
    }
    static bool is_not_wanted(awaited_work& w) noexcept {
        auto& self = static_cast<executor_call&>(w);
        if (!self.claim_.look()) {
            return true; // it was given up
        }
        const bool unwanted = detail::is_unwanted(self.awaiter_.nearest());
        self.claim_.look_away();
        return unwanted;
    }

    Awaiter& awaiter_;
    claim claim_;
};

template <class F, class E>
class asyncify_awaiter final : public offload_call<F> {
public:
    asyncify_awaiter(F&& f, E& executor)
        : offload_call<F>(std::move(f), &offload_op::is_still_away<asyncify_awaiter>),
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
        } catch (...) { // it was not submitted
            on_stop_.reset();
            if (call_ == nullptr) {
                delete call;
            }
            this->is_over();
            throw;
        }
        return this->template stays_away<asyncify_awaiter>(token);
    }

    typename offload_call<F>::value_type await_resume() {
        on_stop_.reset();
        return this->take_outcome("asyncify");
    }

    /// Called by the executor, while this waits.
    using offload_op::nearest;
    void finish(work::fate what) noexcept {
        if (what == work::fate::run) {
            this->call_and_come_back();
        } else {
            this->come_back_uncalled(not_called::dropped);
        }
    }

private:
    friend class awaiter_base;
    friend class offload_op;

    [[nodiscard]] bool take_back() noexcept {
        const bool mine = call_->take_back();
        if (mine) {
            call_ = nullptr; // now owned by the executor
        }
        return mine;
    }
    void cancel() noexcept { this->stop_call(this->pending() && take_back()); }

    /// On an executor, a stop request on any thread withdraws a function that has not started.
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
    E executor_; // a reference, or a moved temporary
};

} // namespace detail

/// Calls `f` in a later iteration of this loop and returns its result:
///
///     const auto part = co_await asyncify([&] { return compress(block); });
///
/// Before that, all ready coroutines run, and the loop processes timers, completions and messages
/// of other threads. A long computation in pieces, each of them asyncify'd, thus delays others by
/// at most one piece.
///
/// `f` is callable with no argument or with an inplace_stop_token, that of the awaiting task. It is
/// moved into the await and called once, as an rvalue; nothing is allocated. The await returns its
/// result, of any type, or throws its exception.
///
/// Threading: `f` runs on this context's thread, or on that of the executor that runs the coroutine
/// (a run_loop).
///
/// Cancellation: if a stop is requested before `f` is called, it is not called, and the await
/// throws std::system_error with std::errc::operation_canceled.
template <class F>
    requires detail::once_callable<std::decay_t<F>>
detail::later_function<std::decay_t<F>> asyncify(F&& f) {
    return detail::later_function<std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
}

/// Calls `f` on an executor and resumes here with its result. `f` and its result are treated as by
/// blocking(f). The queue entry takes one small allocation. A named executor must outlive the
/// await, a temporary is moved into it.
///
///     const auto digest = co_await asyncify([&] { return hash(block); }, pool);
///
/// Threading: `f` runs where `executor` decides; the coroutine resumes where it was, see
/// blocking().
///
/// Cancellation: if a stop is requested before `f` has started, it is not called, and the await
/// throws std::system_error with std::errc::operation_canceled, on a context at once. The same
/// happens if the executor drops it. Once `f` has started it is waited for. A context that shuts
/// down withdraws functions that have not started, and blocks its thread until the others have
/// returned.
template <class F, class E>
    requires detail::once_callable<std::decay_t<F>> && executor<std::remove_reference_t<E>>
detail::executor_function<std::decay_t<F>, E> asyncify(F&& f, E&& executor) {
    return {std::decay_t<F>(std::forward<F>(f)), std::forward<E>(executor)};
}

} // namespace coil
