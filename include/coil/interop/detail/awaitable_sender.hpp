#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/await_with_token.hpp>
#include <coil/core/task.hpp>
#include <coil/interop/sender_vocabulary.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coil {

namespace detail {

template <class V, class T>
struct sender_signatures {
    using type =
        typename V::template completion_signatures<typename V::set_value_t(T),
                                                   typename V::set_error_t(std::exception_ptr),
                                                   typename V::set_stopped_t()>;
};
template <class V>
struct sender_signatures<V, void> {
    using type =
        typename V::template completion_signatures<typename V::set_value_t(),
                                                   typename V::set_error_t(std::exception_ptr),
                                                   typename V::set_stopped_t()>;
};

template <class A>
task<await_result_t<A>> await_in_task(A awaitable) {
    co_return co_await std::move(awaitable);
}

/// The operation of as_sender(): a detached task that awaits and completes the receiver.
template <class V, class A, class R>
class await_operation {
    using value = await_result_t<A>;

public:
    using operation_state_concept = typename V::operation_state_tag;

    await_operation(io_context* context, A&& awaitable, R&& receiver)
        : context_(context), awaitable_(std::move(awaitable)), receiver_(std::move(receiver)) {}
    await_operation(const await_operation&) = delete;
    await_operation& operator=(const await_operation&) = delete;
    ~await_operation() = default;

    void start() noexcept {
        try {
            io_context& on = context_ != nullptr ? *context_ : this_context();
            on_stop_.emplace(typename V::get_stop_token_t{}(typename V::get_env_t{}(receiver_)),
                             stopper{stop_});
            task<> work = run(completer(*this));
            has_task_ = true;
            on.co_spawn(std::move(work)); // the operation may be destroyed when this returns
        } catch (...) {
            fail(std::current_exception());
        }
    }
    friend void tag_invoke(typename V::start_t, await_operation& self) noexcept
        requires(V::uses_tag_invoke)
    {
        self.start();
    }

private:
    struct stopper {
        inplace_stop_source& source;
        void operator()() const noexcept { source.request_stop(); }
    };
    using token = std::remove_cvref_t<std::invoke_result_t<
        typename V::get_stop_token_t, std::invoke_result_t<typename V::get_env_t, const R&>>>;

    /// Completes the receiver with set_stopped() if the task is destroyed before its end. Has no
    /// effect if the task could not be created.
    class completer {
    public:
        explicit completer(await_operation& op) noexcept : op_(&op) {}
        completer(completer&& other) noexcept : op_(coil::detail::exchange(other.op_, nullptr)) {}
        completer& operator=(completer&&) = delete;
        ~completer() {
            if (op_ != nullptr && op_->has_task_) {
                op_->stop();
            }
        }
        [[nodiscard]] await_operation& operation() const noexcept { return *op_; }
        [[nodiscard]] await_operation& take() noexcept {
            return *coil::detail::exchange(op_, nullptr);
        }

    private:
        await_operation* op_;
    };

    static task<> run(completer end) {
        std::exception_ptr error;
        try {
            task<value> work = await_in_task<A>(std::move(end.operation().awaitable_));
            await_with_token<value> awaited(work, end.operation().stop_.get_token());
            if constexpr (std::is_void_v<value>) {
                co_await awaited;
                end.take().succeed();
            } else {
                value&& result = co_await awaited;
                end.take().succeed(std::forward<value>(result));
            }
            co_return;
        } catch (...) {
            error = std::current_exception();
        }
        await_operation& op = end.take();
        if (op.stop_.stop_requested() && is_cancellation(error)) {
            op.stop();
        } else {
            op.fail(std::move(error));
        }
    }

    static bool is_cancellation(const std::exception_ptr& error) noexcept {
        try {
            std::rethrow_exception(error);
        } catch (const std::system_error& e) {
            return e.code() == std::errc::operation_canceled;
        } catch (...) {
            return false;
        }
    }

    // These complete the receiver, which may destroy the operation.

    template <class... Args>
    void succeed(Args&&... result) noexcept {
        on_stop_.reset();
        typename V::set_value_t{}(std::move(receiver_), std::forward<Args>(result)...);
    }
    void fail(std::exception_ptr error) noexcept {
        on_stop_.reset();
        typename V::set_error_t{}(std::move(receiver_), std::move(error));
    }
    void stop() noexcept {
        on_stop_.reset();
        typename V::set_stopped_t{}(std::move(receiver_));
    }

    io_context* const context_;
    A awaitable_;
    R receiver_;
    bool has_task_ = false;
    inplace_stop_source stop_;
    std::optional<typename stop_callback_of<token, stopper>::type> on_stop_;
};

/// The sender of as_sender().
template <class V, class A>
class awaitable_sender {
public:
    using sender_concept = typename V::sender_tag;
    using completion_signatures = typename sender_signatures<V, await_result_t<A>>::type;

    awaitable_sender(io_context* context, A&& awaitable)
        : context_(context), awaitable_(std::move(awaitable)) {}

    template <class R>
    [[nodiscard]] await_operation<V, A, R> connect(R receiver) && {
        return {context_, std::move(awaitable_), std::move(receiver)};
    }
    template <class R>
    friend await_operation<V, A, R> tag_invoke(typename V::connect_t, awaitable_sender&& self,
                                               R receiver)
        requires(V::uses_tag_invoke)
    {
        return std::move(self).connect(std::move(receiver));
    }

private:
    io_context* context_;
    A awaitable_;
};

} // namespace detail

} // namespace coil
