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

/// The same for a task without a result.
template <class F>
concept void_task_function =
    task_function<F> && std::is_void_v<typename std::invoke_result_t<F&>::value_type>;

/// A task, or a class derived from it.
template <class A>
concept derived_from_task =
    requires(std::remove_cvref_t<A>& work) { []<class T>(task<T>&) {}(work); };

/// Neither a task nor a function that returns one.
template <class Work>
concept not_spawnable = !derived_from_task<Work> && !task_function<std::decay_t<Work>>;

/// Awaits the task that `f` returns, and keeps `f` in its own frame until that task has ended: the
/// captures of a lambda are in the lambda, not in the frame of its coroutine.
template <task_function F>
std::invoke_result_t<F&> call_and_keep(F f) {
    co_return co_await f();
}

/// A std::stop_source or inplace_stop_source, which was passed by mistake instead of its token.
template <class Source>
concept stop_source = requires(Source& source) {
    source.request_stop();
    source.get_token();
};

} // namespace coil::detail
