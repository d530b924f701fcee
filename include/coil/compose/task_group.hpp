#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/late.hpp>
#include <coil/compose/child_handle.hpp>
#include <coil/compose/detail/completion_queue.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// Options of a task_group.
struct task_group_options {
    /// The maximum number of running children; spawn() of another one waits until one has ended.
    std::size_t max_children = std::numeric_limits<std::size_t>::max();
};

template <class T>
class group_spawn;

/// Tasks of one type whose results are returned in the order in which the tasks end.
///
///     task_group<page> pages;
///     for (const std::string& url : urls)
///         pages.spawn(fetch(url));
///     while (auto page = co_await pages.next())
///         show(*page);
///
/// next() waits until a child has ended, and returns its result: a std::optional<T>, for T& an
/// optional reference_wrapper, for void a bool. It returns nullopt or false when no child is left.
/// The exception of a child is thrown by the next() that would have returned its result; the other
/// children continue, and further calls return their results. Children may be spawned at any time,
/// even between two calls of next().
///
/// Results wait in the group until they are taken. Destroying a group destroys the children that
/// have not ended: their I/O is cancelled and waited for. Debug builds report such children on
/// stderr unless cancel() was called. Results that were not taken are destroyed; exceptions go to
/// the context's on_unhandled_exception, except those that only say that a child was cancelled.
///
/// Threading: a group belongs to the context of its first spawn(). All members must be called
/// there, except cancel() and stop_token(), which may be called from any thread. Children stay on
/// that context.
///
/// Cancellation: a stop of the task that awaits next(), or the end of a timeout() around it, asks
/// all children to stop. next() continues to return their results. A stop of the token passed to
/// the constructor reaches the children at any time.
template <class T = void>
class task_group final : detail::completion_queue {
public:
    using result_type = typename detail::group_result<T>::type;

    task_group() : task_group(task_group_options{}) {}
    explicit task_group(task_group_options options) : completion_queue(options.max_children) {}
    explicit task_group(task_group_options options, inplace_stop_token outside)
        : task_group(options) {
        outside_.emplace(outside, stop_source());
    }
    /// Produces a readable compiler error.
    template <std::integral Number>
    explicit task_group(Number)
        COIL_DELETE("name the option: task_group<T> g({.max_children = 4})");
    task_group(const task_group&) = delete;
    task_group& operator=(const task_group&) = delete;
    ~task_group() {
#if COIL_ASSERTIONS
        if (size() > 0) {
            report_unjoined("a task_group was left before next() had returned all results",
                            "Await next() until it returns nothing");
        }
#endif
        outside_.reset();
        leave_joiner();
        do { // a destructor may spawn another child
            destroy_children();
            discard_results();
        } while (size() > 0);
    }

    /// Starts a child. It first runs in a later iteration of the loop. co_await waits while
    /// max_children are running. Without co_await the child is queued, in order and without a
    /// limit. If the awaiting task is asked to stop while it waits, the child is not started and
    /// co_await throws std::errc::operation_canceled. The name is shown by dump_tasks() and
    /// this_task::backtrace().
    group_spawn<T> spawn(task<T> work COIL_CAPTURED(this), std::string_view name = {},
                         std::source_location where = std::source_location::current()) {
        return group_spawn<T>(*this, std::move(work), name, where);
    }

    /// Produces a readable compiler error.
    template <class Work>
        requires(!detail::derived_from_task<Work> ||
                 !std::is_convertible_v<std::remove_cvref_t<Work>, task<T>>)
    void spawn(Work&&, std::string_view = {})
        COIL_DELETE("a task_group<T> takes a task<T>: call the function, group.spawn(f(x))");

    class next_awaiter; // NOLINT(*-virtual-class-destructor): it is final
    /// Returns the result of the child that ended first among those whose results have not been
    /// returned yet. At most one coroutine at a time may wait. It may be used with timeout() and in
    /// combinators: a result that is not used stays in the group.
    [[nodiscard("did you forget to co_await?")]] next_awaiter next() noexcept;

    /// Produce readable compiler errors.
    void join() COIL_DELETE("await the results: while (auto result = co_await g.next())");
    void operator co_await() const
        COIL_DELETE_COPY("await the results: while (auto result = co_await g.next())");
    void begin() const
        COIL_DELETE_COPY("await the results: while (auto result = co_await g.next())");
    void end() const COIL_DELETE_COPY("await the results: while (auto result = co_await g.next())");

    /// Asks all children to stop, including those spawned later. Does not wait.
    void cancel() noexcept { completion_queue::cancel(); }
    [[nodiscard]] inplace_stop_token stop_token() const noexcept {
        return completion_queue::stop_token();
    }
    /// The number of children that have not ended, including queued ones.
    [[nodiscard]] std::size_t size() const noexcept { return completion_queue::size(); }
    /// The number of results that next() returns without waiting.
    [[nodiscard]] std::size_t ready() const noexcept { return ended_children(); }
    /// The number of children so far that had to wait because of max_children.
    [[nodiscard]] std::uint64_t held_back() const noexcept { return completion_queue::held_back(); }

private:
    using child = detail::child_state<T>;

    /// Releases the child even if taking its result throws.
    struct taken {
        explicit taken(task_group& from) noexcept : state(static_cast<child&>(from.pop())) {}
        taken(const taken&) = delete;
        ~taken() { state.release(); }
        child& state;
    };

    result_type take_next() {
        if (!has_ended_child()) {
            return result_type();
        }
        const taken first(*this);
        if constexpr (std::is_void_v<T>) {
            first.state.take();
            return true;
        } else {
            return result_type(first.state.take());
        }
    }
    void discard_results() noexcept {
        while (has_ended_child()) {
            const taken first(*this);
            if (std::exception_ptr error = first.state.error()) {
                detail::report_aside(std::move(error), first.state.label());
            }
        }
    }

    detail::late<detail::relayed_stop> outside_;
};

/// The awaitable returned by task_group::next().
template <class T>
class [[nodiscard("did you forget to co_await?")]] task_group<T>::next_awaiter final
    : public detail::nursery::joiner {
public:
    explicit next_awaiter(task_group& group) noexcept : joiner(group), group_(&group) {}
    next_awaiter(next_awaiter&&) noexcept = default; // only before it is awaited
    next_awaiter& operator=(next_awaiter&&) = delete;
    ~next_awaiter() = default;

    [[nodiscard]] bool await_ready() const noexcept {
        return joiner::await_ready() || group_->has_ended_child();
    }
    result_type await_resume() {
        if (finish() == outcome::gone) [[unlikely]] {
            detail::throw_group_is_gone();
        }
        return group_->take_next();
    }

    /// Used by combinators.
    [[nodiscard]] next_awaiter awaiter_for_child() const noexcept { return next_awaiter(*group_); }
    /// Whether await_resume() throws. Precondition: the wait is over.
    [[nodiscard]] bool has_failed() const noexcept {
        return has_lost_nursery() ||
               (group_->has_ended_child() && static_cast<child&>(group_->front()).has_failed());
    }
    /// Used by combinators instead of await_resume(): the result stays in the group.
    void discard() noexcept { (void)finish(); }

private:
    task_group* group_;
};

template <class T>
typename task_group<T>::next_awaiter task_group<T>::next() noexcept {
    return next_awaiter(*this);
}

/// The awaitable returned by task_group::spawn(): waits until the child has started.
template <class T>
class group_spawn : supervised_spawn<T> {
public:
    using supervised_spawn<T>::supervised_spawn;
    using supervised_spawn<T>::await_ready;
    using supervised_spawn<T>::await_suspend;
    using supervised_spawn<T>::end_as_child;
    void await_resume() { (void)supervised_spawn<T>::await_resume(); }
};

} // namespace coil
