#pragma once

#include <coil/context/detail/claim_once.hpp>
#include <coil/core/frame_allocator.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/offload.hpp>
#include <coil/exec/executor.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

/// The await of a later iteration of the coroutine's own loop: the coroutine moves to where it is.
class requeue_op : protected remote_op {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

protected:
    requeue_op() noexcept = default;
    ~requeue_op() {
        if (is_elsewhere()) [[unlikely]] {
            take_out();
        }
    }

    [[nodiscard]] bool requeue(std::coroutine_handle<> waiter, promise_base* nearest) noexcept;

private:
    void take_out() noexcept;
};

template <class F>
class requeued_call final : public requeue_op {
public:
    explicit requeued_call(F&& f) : function_(std::move(f)) {}

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) noexcept {
        token_ = stop_token_of(waiter);
        return this->requeue(waiter, nearest_root(waiter));
    }
    call_result<F> await_resume() {
        this->end();
        if (this->lost_executor()) [[unlikely]] {
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
    [[nodiscard]] bool withdraw() noexcept { return claim_.claim(); }

private:
    static void finish(work& w, fate what) noexcept {
        auto* const self = static_cast<executor_call*>(&w);
        if (self->claim_.claim()) {
            self->awaiter_.finish(what); // may destroy this
        } else {
            delete self;
        }
    }
    static bool is_not_wanted(awaited_work& w) noexcept {
        auto& self = static_cast<executor_call&>(w);
        if (!self.claim_.pin()) {
            return true; // it was withdrawn
        }
        const bool unwanted = detail::is_unwanted(self.awaiter_.nearest());
        self.claim_.unpin();
        return unwanted;
    }

    Awaiter& awaiter_;
    claim_once claim_;
};

template <class F, class E>
class asyncify_awaiter final : public offload_call<asyncify_awaiter<F, E>, F> {
public:
    asyncify_awaiter(F&& f, E& executor)
        : offload_call<asyncify_awaiter, F>(std::move(f)), executor_(executor) {}
    asyncify_awaiter(const asyncify_awaiter&) = delete;
    asyncify_awaiter& operator=(const asyncify_awaiter&) = delete;
    ~asyncify_awaiter() {
        this->end_call();
        delete call_;
    }

private:
    friend class offload_call<asyncify_awaiter, F>;
    friend class executor_call<asyncify_awaiter>;

    static constexpr const char* name = "asyncify";

    void submit() {
        call_ = new executor_call<asyncify_awaiter>(*this);
        submit_to(executor_, *call_);
    }
    [[nodiscard]] bool withdraw() noexcept {
        if (call_ == nullptr || !call_->withdraw()) {
            return false;
        }
        call_ = nullptr; // now owned by the executor
        return true;
    }
    /// Called by the executor, while this waits.
    void finish(work::fate what) noexcept {
        if (what == work::fate::run) {
            this->run_call();
        } else {
            this->refuse_call(not_called::dropped);
        }
    }

    E& executor_;
    executor_call<asyncify_awaiter>* call_ = nullptr;
};

template <class F>
class [[nodiscard("did you forget to co_await? Only that calls the function")]] requeued_function {
public:
    explicit requeued_function(F&& f) : function_(std::move(f)) {}

    [[nodiscard]] requeued_call<F> operator co_await() && {
        return requeued_call<F>(std::move(function_));
    }
    template <class Self = F>
    requeued_call<F> operator co_await() & {
        static_assert(always_false<Self>, "asyncify(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return requeued_call<F>(std::move(function_));
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
detail::requeued_function<std::decay_t<F>> asyncify(F&& f) {
    return detail::requeued_function<std::decay_t<F>>(std::decay_t<F>(std::forward<F>(f)));
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
/// throws std::system_error with std::errc::operation_canceled, at once. The same happens if the
/// executor drops it. Once `f` has started it is waited for. A context that shuts down withdraws
/// functions that have not started, and blocks its thread until the others have returned.
template <class F, class E>
    requires detail::once_callable<std::decay_t<F>> && executor<std::remove_reference_t<E>>
detail::executor_function<std::decay_t<F>, E> asyncify(F&& f, E&& executor) {
    return {std::decay_t<F>(std::forward<F>(f)), std::forward<E>(executor)};
}

} // namespace coil
