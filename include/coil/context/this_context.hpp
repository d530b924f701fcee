#pragma once

#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/context/io_context.hpp>

#include <coroutine>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace coil {

/// The context that runs the calling coroutine. Outside of a context the program terminates with a
/// message.
inline io_context& this_context() noexcept { return detail::required_loop().context(); }

/// Starts a detached task on the current context.
inline void co_spawn(task<> work COIL_CAPTURED(global)) {
    detail::event_loop& loop = detail::required_loop();
    const auto coroutine = work.release();
    coroutine.promise().become_root(detail::detached_owner::instance);
    loop.add_task(coroutine.promise(), coroutine);
}

/// Produces a readable compiler error.
template <class T, class... Rest>
    requires(!std::is_void_v<T>)
void co_spawn(task<T>, Rest&&...) COIL_DELETE(
    "co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result");

/// Starts a task on the current context; the handle returns its result.
template <class T>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global)) {
    return this_context().spawn(std::move(work));
}

/// The same for a task that is stopped by `token` (a std::stop_token or inplace_stop_token).
template <detail::any_stop_token Token>
void co_spawn(task<> work COIL_CAPTURED(global), Token token) {
    co_spawn(with_stop_token(std::move(work), std::move(token)));
}
template <class T, detail::any_stop_token Token>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Token token) {
    return spawn(with_stop_token(std::move(work), std::move(token)));
}

/// The same for a task with a name, see io_context.
inline void co_spawn(task<> work COIL_CAPTURED(global), std::string name,
                     std::source_location where = std::source_location::current()) {
    this_context().co_spawn(std::move(work), std::move(name), where);
}
template <class T>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global), std::string name,
                     std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(work), std::move(name), where);
}

/// The same for a function that returns a task: its captures live as long as the task.
///
///     co_spawn([name]() -> task<> { co_await greet(name); });
template <detail::void_task_function F>
void co_spawn(F f) {
    this_context().co_spawn(std::move(f));
}
template <detail::task_function F>
auto spawn(F f) {
    return this_context().spawn(std::move(f));
}

/// Produce readable compiler errors.
template <detail::stop_source Source>
void co_spawn(task<> work COIL_CAPTURED(global), Source&& source)
    COIL_DELETE("pass the token of the stop source: co_spawn(f(), source.get_token())");
template <class T, detail::stop_source Source>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Source&& source)
    COIL_DELETE("pass the token of the stop source: spawn(f(), source.get_token())");
template <detail::not_spawnable Work, class... Rest>
void co_spawn(Work&&, Rest&&...)
    COIL_DELETE("co_spawn takes a task, or a function without parameters that returns one: "
                "co_spawn(f(x))");
template <detail::not_spawnable Work, class... Rest>
void spawn(Work&&, Rest&&...)
    COIL_DELETE("spawn takes a task, or a function without parameters that returns one: "
                "spawn(f(x))");
template <detail::task_function F>
    requires(!detail::void_task_function<F>)
void co_spawn(F) COIL_DELETE(
    "co_spawn takes a task<>, which has no result: spawn(f) returns a handle to the result");

/// Lets all other ready coroutines of this context, or of this run_loop, run first.
inline detail::yield_awaiter yield() noexcept { return {}; }

} // namespace coil
