#pragma once

#include <coil/context/detail/spread.hpp>
#include <coil/context/runtime.hpp>
#include <coil/core/task.hpp>

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil {

/// Runs all `tasks` in parallel on the contexts of the calling task's runtime, as its dispatcher
/// selects, and returns their values in the order of the tasks. On a context that belongs to no
/// runtime, they run concurrently there.
///
///     std::vector<task<int>> parts;
///     for (const auto& range : ranges)
///         parts.push_back(count(range));
///     const std::vector<int> counts = co_await parallel(std::move(parts));
///
/// The first exception asks the other tasks to stop, and is rethrown when all have ended. A stop of
/// the calling task asks all of them to stop. If a shutdown destroys the calling task, they are
/// asked to stop but not waited for: objects that they refer to must belong to them or outlive the
/// runtime's run.
template <class T>
[[nodiscard]] task<std::vector<T>> parallel(std::vector<task<T>>&& tasks) {
    return detail::collect(std::move(tasks), detail::spawn_beside{});
}
[[nodiscard]] task<> parallel(std::vector<task<>>&& tasks);

/// A function that combines two results into one: `T reduce(T, T)`, such as std::plus<>.
template <class F, class T>
concept reducer_of = std::is_invocable_r_v<T, F&, T, T>;

/// Like parallel(tasks), but combines the values into one: `reduce(reduce(v0, v1), v2)` and so on,
/// on the calling context, in the order of the tasks. Throws std::invalid_argument if there are
/// none.
///
///     const int total = co_await parallel(std::move(parts), std::plus<>());
template <class T, reducer_of<T> Reduce>
[[nodiscard]] COIL_CORO_WRAPPER task<T> parallel(std::vector<task<T>>&& tasks, Reduce reduce) {
    return detail::fold(std::move(tasks), std::move(reduce), detail::spawn_beside{});
}

/// The same on the contexts of the given runtime; the calling task may run anywhere.
template <class T>
[[nodiscard]] task<std::vector<T>> parallel(runtime& contexts, std::vector<task<T>>&& tasks) {
    return detail::collect(std::move(tasks), detail::spawn_on{contexts});
}
[[nodiscard]] task<> parallel(runtime& contexts, std::vector<task<>>&& tasks);
template <class T, reducer_of<T> Reduce>
[[nodiscard]] task<T> parallel(runtime& contexts, std::vector<task<T>>&& tasks, Reduce reduce) {
    return detail::fold(std::move(tasks), std::move(reduce), detail::spawn_on{contexts});
}

/// Produce readable compiler errors.
template <class T, class Reduce>
    requires(!reducer_of<Reduce, T>)
void parallel(std::vector<task<T>>&&, Reduce)
    COIL_DELETE("reduce combines two results of the tasks: T reduce(T, T), such as std::plus<>()");
template <class T, class Reduce>
    requires(!reducer_of<Reduce, T>)
void parallel(runtime&, std::vector<task<T>>&&, Reduce)
    COIL_DELETE("reduce combines two results of the tasks: T reduce(T, T), such as std::plus<>()");
template <class Tasks, class... Rest>
    requires detail::not_parallel_tasks<Tasks>
task<> parallel(Tasks&&, Rest&&...)
    COIL_DELETE("parallel takes a vector of tasks, and moves them: parallel(std::move(tasks))");
template <class Tasks, class... Rest>
    requires detail::not_parallel_tasks<Tasks>
task<> parallel(runtime&, Tasks&&, Rest&&...)
    COIL_DELETE("parallel takes a vector of tasks, and moves them: parallel(rt, std::move(tasks))");

} // namespace coil
