#pragma once

#include <coil/core/inplace_stop_token.hpp>

#include <coroutine>

namespace coil {

namespace detail {

template <class P>
inplace_stop_token stop_token_of(std::coroutine_handle<P> coroutine) noexcept {
    if constexpr (requires { coroutine.promise().stop_token(); }) {
        return coroutine.promise().stop_token();
    } else {
        return {};
    }
}

} // namespace detail

namespace this_task {

namespace detail {

class [[nodiscard("did you forget to co_await?")]] stop_token_awaiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    bool await_suspend(std::coroutine_handle<P> self) noexcept {
        token_ = coil::detail::stop_token_of(self);
        return false;
    }
    [[nodiscard]] inplace_stop_token await_resume() const noexcept { return token_; }

private:
    inplace_stop_token token_;
};

} // namespace detail

} // namespace this_task

} // namespace coil
