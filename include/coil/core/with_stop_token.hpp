#pragma once

#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <concepts>
#include <coroutine>
#include <stop_token>
#include <utility>

namespace coil {

namespace detail {

template <class Token>
concept any_stop_token =
    std::same_as<Token, std::stop_token> || std::same_as<Token, inplace_stop_token>;

template <class F>
std::stop_callback<F> on_stop(const std::stop_token& token, F f) {
    return std::stop_callback<F>(token, std::move(f));
}
template <class F>
inplace_stop_callback<F> on_stop(const inplace_stop_token& token, F f) {
    return inplace_stop_callback<F>(token, std::move(f));
}

/// Awaits a task that gets another stop token than its parent's.
template <class T>
class await_with_token {
public:
    await_with_token(task<T>& work, inplace_stop_token token) noexcept
        : awaiter_(std::move(work).operator co_await()), detour_{token, nullptr} {}
    await_with_token(const await_with_token&) = delete;
    await_with_token& operator=(const await_with_token&) = delete;
    ~await_with_token() = default;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class P>
    transfer await_suspend(std::coroutine_handle<P> parent) noexcept {
        if constexpr (std::derived_from<P, promise_base>) {
            detour_.root = parent.promise().root();
        }
        return awaiter_.start(parent, std::as_const(detour_));
    }
    T await_resume() { return awaiter_.await_resume(); }

private:
    typename task<T>::awaiter awaiter_;
    stop_detour detour_;
};

} // namespace detail

/// A task that is asked to stop by `token` as well as by whoever starts it: for the edge of a
/// program whose other parts use std::stop_token.
///
///     std::jthread worker([](std::stop_token stop) {
///         coil::run(with_stop_token(serve(), stop));
///     });
///
/// spawn(work, token), co_spawn(work, token) and run(work, token) do the same.
template <class T, detail::any_stop_token Token>
task<T> with_stop_token(task<T> work, Token token) {
    inplace_stop_source either;
    task<T> stoppable = std::move(work); // parameters outlive locals; its awaits hang in `either`
    const auto stop = [&either]() noexcept { either.request_stop(); };
    const inplace_stop_token inherited = co_await this_task::stop_token();
    const auto of_parent = detail::on_stop(inherited, stop);
    const auto of_token = detail::on_stop(token, stop);
    co_return co_await detail::await_with_token<T>(stoppable, either.get_token());
}

} // namespace coil
