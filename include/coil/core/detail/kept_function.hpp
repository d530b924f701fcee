#pragma once

#include <coil/core/config.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil::detail {

/// A function without parameters that returns a task, such as a coroutine lambda.
template <class F>
concept task_function =
    std::invocable<F&> &&
    std::same_as<std::invoke_result_t<F&>, task<typename std::invoke_result_t<F&>::value_type>>;

/// The task that `f` returns, in a frame that keeps `f`, because the captures of a lambda are not
/// in the frame of its coroutine.
template <task_function F>
std::invoke_result_t<F&> call_and_keep(F f) {
    co_return co_await f();
}

/// A std::stop_source or inplace_stop_source: passed by mistake for its token.
template <class Source>
concept stop_source = requires(Source& source) {
    source.request_stop();
    source.get_token();
};

} // namespace coil::detail
