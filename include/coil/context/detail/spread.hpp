#pragma once

#include <coil/context/detail/spread_state.hpp>
#include <coil/context/io_context.hpp>
#include <coil/context/join_handle.hpp>
#include <coil/context/runtime.hpp>
#include <coil/context/this_context.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil::detail {

template <class T>
inline constexpr bool is_vector_of_tasks = false;
template <class T>
inline constexpr bool is_vector_of_tasks<std::vector<task<T>>> = true;

/// Neither a temporary vector of tasks nor the runtime that runs them.
template <class A>
concept not_parallel_tasks =
    !is_vector_of_tasks<A> && !std::is_same_v<std::remove_cvref_t<A>, runtime>;

template <class T>
task<T> in_group(task<T> work, spread_state::owner group) {
    try {
        co_return co_await with_stop_token(std::move(work), group->token());
    } catch (...) {
        group->fail(std::current_exception());
        throw;
    }
}

/// Starts all `tasks` with `spawn`, joins them in order, and passes each value to `take`.
template <class T, class Spawn, class Take>
task<> spread(std::vector<task<T>> tasks, Spawn spawn, Take take) {
    struct stop_at_end {
        explicit stop_at_end(const spread_state::owner& g) noexcept : group(g) {}
        stop_at_end(const stop_at_end&) = delete;
        stop_at_end& operator=(const stop_at_end&) = delete;
        ~stop_at_end() { group->stop(); } // needed if this frame is destroyed while it waits
        const spread_state::owner& group;
    };
    const spread_state::owner group;
    const stop_at_end guard(group);
    std::vector<join_handle<T>> handles;
    handles.reserve(tasks.size());
    try {
        for (task<T>& each : tasks) {
            handles.push_back(spawn(in_group(std::move(each), group)));
        }
    } catch (...) {
        group->fail(std::current_exception()); // the tasks that were started are still waited for
    }
    tasks.clear();
    const auto stop = [&group]() noexcept { group->stop(); };
    const inplace_stop_callback on_stop(co_await this_task::stop_token(), stop);
    for (join_handle<T>& handle : handles) {
        try {
            if constexpr (std::is_void_v<T>) {
                co_await handle;
            } else {
                T value = co_await handle;
                if (!group->has_failed()) {
                    take(std::move(value));
                }
            }
        } catch (...) {
            group->fail(std::current_exception()); // thrown by `take`, or the context stopped
        }
    }
    group->rethrow();
}

struct spawn_beside {
    template <class T>
    join_handle<T> operator()(task<T> work) const {
        runtime* const contexts = this_context().loop().owning_runtime();
        return contexts != nullptr ? contexts->spawn(std::move(work))
                                   : this_context().spawn(std::move(work));
    }
};

struct spawn_on {
    runtime& contexts;
    template <class T>
    join_handle<T> operator()(task<T> work) const {
        return contexts.spawn(std::move(work));
    }
};

template <class T, class Spawn>
task<std::vector<T>> collect(std::vector<task<T>> tasks, Spawn spawn) {
    std::vector<T> values;
    values.reserve(tasks.size());
    const auto take = [&values](T&& value) { values.push_back(std::move(value)); };
    co_await spread(std::move(tasks), spawn, take);
    co_return values;
}

template <class T, class Reduce, class Spawn>
task<T> fold(std::vector<task<T>> tasks, Reduce reduce, Spawn spawn) {
    if (tasks.empty()) {
        throw std::invalid_argument("coil: parallel() of no tasks has nothing to reduce");
    }
    std::optional<T> total;
    const auto take = [&total, &reduce](T&& value) {
        if (total) {
            T sum = std::invoke(reduce, std::move(*total), std::move(value));
            total.emplace(std::move(sum));
        } else {
            total.emplace(std::move(value));
        }
    };
    co_await spread(std::move(tasks), spawn, take);
    co_return std::move(*total);
}

struct discard {
    void operator()() const noexcept {}
};

} // namespace coil::detail
