#pragma once

#include <coil/base/std_stop_token.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace coil::detail {

template <class Token>
concept any_stop_token =
    std::same_as<Token, std::stop_token> || std::same_as<Token, inplace_stop_token>;

/// A template, because std::stop_callback may be an incomplete type here.
template <std::same_as<std::stop_token> Token>
auto stop_by(const Token& token, inplace_stop_source& source) {
    const auto stop = [&source]() noexcept { source.request_stop(); };
    return std::stop_callback<std::remove_const_t<decltype(stop)>>(token, stop);
}
inline relayed_stop stop_by(const inplace_stop_token& token, inplace_stop_source& source) {
    return {token, source};
}

/// Awaits a task with a stop token other than its parent's.
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

} // namespace coil::detail
