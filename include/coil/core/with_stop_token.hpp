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

inline auto stop_by(const std::stop_token& token, inplace_stop_source& source) {
    const auto stop = [&source]() noexcept { source.request_stop(); };
    return std::stop_callback(token, stop);
}
inline relayed_stop stop_by(const inplace_stop_token& token, inplace_stop_source& source) {
    return {token, source};
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
    const inplace_stop_token inherited = co_await this_task::stop_token();
    const auto of_parent = detail::stop_by(inherited, either);
    const auto of_token = detail::stop_by(token, either);
    co_return co_await detail::await_with_token<T>(stoppable, either.get_token());
}

} // namespace coil
