#pragma once

#include <coil/core/task.hpp>
#include <coil/interop/completion.hpp>
#include <coil/interop/detail/callback_state.hpp>

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace coil::detail {

struct no_cancel {
    void operator()() const noexcept {}
};

template <class T, class Initiate, class Cancel>
class callback_awaiter final : public callback_op<T> {
public:
    callback_awaiter(Initiate&& initiate, Cancel&& cancel)
        : callback_op<T>(std::is_same_v<Cancel, no_cancel> ? nullptr : &call_cancel),
          initiate_(std::move(initiate)), cancel_(std::move(cancel)) {}
    callback_awaiter(const callback_awaiter&) = delete;
    callback_awaiter& operator=(const callback_awaiter&) = delete;
    ~callback_awaiter() { this->end_call(); }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> waiter) {
        if (!this->start(waiter)) {
            return false;
        }
        try {
            std::invoke(std::move(initiate_), completion<T>(this->state()));
        } catch (...) {
            this->initiate_failed(std::current_exception());
        }
        return this->suspend_call();
    }

private:
    static void call_cancel(callback_op<T>& op) noexcept {
        auto& self = static_cast<callback_awaiter&>(op);
        if (self.cancel_) {
            // The await may end, and destroy this, while the function runs.
            Cancel cancel = std::move(*self.cancel_);
            self.cancel_.reset();
            std::invoke(cancel);
        }
    }

    Initiate initiate_;
    std::optional<Cancel> cancel_;
};

/// The awaitable returned by from_callback(). Nothing happens before it is awaited.
template <class T, class Initiate, class Cancel>
class [[nodiscard("did you forget to co_await? Only that starts it")]] callback_call
    : public not_its_result<callback_call<T, Initiate, Cancel>> {
public:
    callback_call(Initiate initiate, Cancel cancel)
        : initiate_(std::move(initiate)), cancel_(std::move(cancel)) {}

    [[nodiscard]] callback_awaiter<T, Initiate, Cancel> operator co_await() && {
        return {std::move(initiate_), std::move(cancel_)};
    }
    template <class Self = Initiate>
    callback_awaiter<T, Initiate, Cancel> operator co_await() & {
        static_assert(always_false<Self>, "from_callback(...) is awaited once: write co_await "
                                          "std::move(x), or await it directly");
        return {std::move(initiate_), std::move(cancel_)};
    }

private:
    Initiate initiate_;
    Cancel cancel_;
};

} // namespace coil::detail
