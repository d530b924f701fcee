#pragma once

#include <coil/context/runtime.hpp>
#include <coil/core/this_task.hpp>
#include <coil/core/with_stop_token.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace coil {

namespace detail {

/// The shared state of tasks that end together: their stop source and the first error. Shared by
/// the awaiting task and all of them, because any of them may be destroyed first.
class task_group {
public:
    class owner {
    public:
        owner() : group_(new task_group) {}
        owner(const owner& other) noexcept : group_(other.group_) {
            group_->owners_.fetch_add(1, std::memory_order_relaxed);
        }
        owner& operator=(const owner&) = delete;
        ~owner() {
            if (group_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                delete group_;
            }
        }
        task_group* operator->() const noexcept { return group_; }

    private:
        task_group* group_;
    };

    void stop() noexcept { stop_.request_stop(); }
    [[nodiscard]] inplace_stop_token token() const noexcept { return stop_.get_token(); }

    /// May be called from any thread. Keeps the first error and stops the other tasks.
    void fail(std::exception_ptr error) noexcept {
        if (!failed_.exchange(true, std::memory_order_acq_rel)) {
            error_ = std::move(error);
        }
        stop();
    }
    [[nodiscard]] bool has_failed() const noexcept {
        return failed_.load(std::memory_order_relaxed);
    }
    /// Called when all have been joined.
    void rethrow() const {
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

private:
    task_group() = default;
    ~task_group() = default;

    inplace_stop_source stop_;
    std::exception_ptr error_;
    std::atomic<bool> failed_{false};
    std::atomic<unsigned> owners_{1};
};

template <class T>
task<T> in_group(task<T> work, task_group::owner group) {
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
        explicit stop_at_end(const task_group::owner& g) noexcept : group(g) {}
        stop_at_end(const stop_at_end&) = delete;
        stop_at_end& operator=(const stop_at_end&) = delete;
        ~stop_at_end() { group->stop(); } // needed if this frame is destroyed while it waits
        const task_group::owner& group;
    };
    const task_group::owner group;
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

} // namespace detail

/// Runs all `tasks` in parallel on the contexts of the calling task's runtime, as its dispatcher
/// selects, and returns their values in the order of the tasks. On a context that belongs to no
/// runtime, they run concurrently there.
///
///     std::vector<task<int>> parts;
///     for (const auto& range : ranges)
///         parts.push_back(count(range));
///     const std::vector<int> counts = co_await parallel(std::move(parts));
///
/// The first exception, and a stop of the calling task, ask all others to stop; the exception is
/// rethrown when all have ended. If a shutdown destroys the calling task, the others are asked to
/// stop but not waited for: what they refer to must outlive the runtime's run or belong to them.
template <class T>
[[nodiscard]] task<std::vector<T>> parallel(std::vector<task<T>> tasks) {
    return detail::collect(std::move(tasks), detail::spawn_beside{});
}
[[nodiscard]] inline task<> parallel(std::vector<task<>> tasks) {
    return detail::spread(std::move(tasks), detail::spawn_beside{}, detail::discard{});
}

/// As parallel(tasks), but combines the values into one: `reduce(reduce(v0, v1), v2)` and so on, on
/// the calling context, in the order of the tasks. Throws std::invalid_argument if there are none.
///
///     const int total = co_await parallel(std::move(parts), std::plus<>());
template <class T, class Reduce>
    requires std::is_invocable_r_v<T, Reduce&, T, T>
[[nodiscard]] task<T> parallel(std::vector<task<T>> tasks, Reduce reduce) {
    return detail::fold(std::move(tasks), std::move(reduce), detail::spawn_beside{});
}

/// The same on the contexts of `runtime`; the calling task may run anywhere.
template <class T>
[[nodiscard]] task<std::vector<T>> parallel(runtime& contexts, std::vector<task<T>> tasks) {
    return detail::collect(std::move(tasks), detail::spawn_on{contexts});
}
[[nodiscard]] inline task<> parallel(runtime& contexts, std::vector<task<>> tasks) {
    return detail::spread(std::move(tasks), detail::spawn_on{contexts}, detail::discard{});
}
template <class T, class Reduce>
    requires std::is_invocable_r_v<T, Reduce&, T, T>
[[nodiscard]] task<T> parallel(runtime& contexts, std::vector<task<T>> tasks, Reduce reduce) {
    return detail::fold(std::move(tasks), std::move(reduce), detail::spawn_on{contexts});
}

} // namespace coil
