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
inline void
co_spawn(task<> work COIL_CAPTURED(global),
         [[maybe_unused]] std::source_location where = std::source_location::current()) {
    detail::event_loop& loop = detail::required_loop();
    const auto coroutine = work.release();
#if COIL_ASSERTIONS
    coroutine.promise().become_root(detail::owner_of_unnamed(where));
#else
    coroutine.promise().become_root(detail::detached_owner::instance);
#endif
    loop.add_task(coroutine.promise(), coroutine);
}

/// Produces a readable compiler error.
template <class T, class... Rest>
    requires(!std::is_void_v<T>)
void co_spawn(task<T>, Rest&&...) COIL_DELETE(
    "co_spawn takes a task<>, which has no result: spawn(t) returns a handle to the result");

/// Starts a task on the current context; the handle returns its result.
template <class T>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global),
                     std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(work), where);
}

/// The same for a task that is stopped by `token` (a std::stop_token or inplace_stop_token).
template <detail::any_stop_token Token>
void co_spawn(task<> work COIL_CAPTURED(global), Token token,
              std::source_location where = std::source_location::current()) {
    co_spawn(with_stop_token(std::move(work), std::move(token)), where);
}
template <class T, detail::any_stop_token Token>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global), Token token,
                     std::source_location where = std::source_location::current()) {
    return spawn(with_stop_token(std::move(work), std::move(token)), where);
}

/// The same for a task with a name, see io_context.
inline void co_spawn(task<> work COIL_CAPTURED(global), const std::string& name,
                     std::source_location where = std::source_location::current()) {
    this_context().co_spawn(std::move(work), name, where);
}
template <class T>
join_handle<T> spawn(task<T> work COIL_CAPTURED(global), const std::string& name,
                     std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(work), name, where);
}

/// The same for a function that returns a task: its captures live as long as the task.
///
///     co_spawn([name]() -> task<> { co_await greet(name); });
template <detail::void_task_function F>
void co_spawn(F f, std::source_location where = std::source_location::current()) {
    this_context().co_spawn(std::move(f), where);
}
template <detail::task_function F>
auto spawn(F f, std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(f), where);
}
template <detail::void_task_function F, detail::any_stop_token Token>
void co_spawn(F f, Token token, std::source_location where = std::source_location::current()) {
    this_context().co_spawn(std::move(f), std::move(token), where);
}
template <detail::task_function F, detail::any_stop_token Token>
auto spawn(F f, Token token, std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(f), std::move(token), where);
}
template <detail::void_task_function F>
void co_spawn(F f, const std::string& name,
              std::source_location where = std::source_location::current()) {
    this_context().co_spawn(std::move(f), name, where);
}
template <detail::task_function F>
auto spawn(F f, const std::string& name,
           std::source_location where = std::source_location::current()) {
    return this_context().spawn(std::move(f), name, where);
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

void co_spawn(...)
    COIL_DELETE("write co_spawn(f()), co_spawn(f(), \"name\") or co_spawn(f(), token)");
void spawn(...) COIL_DELETE("write spawn(f()), spawn(f(), \"name\") or spawn(f(), token)");

/// Lets all other ready coroutines of this context, or of this run_loop, run first.
inline detail::yield_awaiter yield() noexcept { return {}; }

} // namespace coil
