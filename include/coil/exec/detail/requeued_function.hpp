#pragma once

#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/exec/detail/offload.hpp>
#include <coil/exec/detail/remote_op.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

/// Awaits a later iteration of the coroutine's own loop: a move of the coroutine to the executor on
/// which it already is.
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

} // namespace coil::detail
