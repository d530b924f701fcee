#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/late.hpp>
#include <coil/base/std_chrono.hpp>
#include <coil/compose/child_handle.hpp>
#include <coil/compose/detail/explain_child.hpp>
#include <coil/compose/detail/join_task.hpp>
#include <coil/compose/detail/nursery.hpp>
#include <coil/compose/detail/restart.hpp>
#include <coil/compose/detail/scope_child.hpp>
#include <coil/compose/supervisor_options.hpp>
#include <coil/context/sleep.hpp>
#include <coil/core/config.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// Independent children, such as the sessions of a server. The failure of a child is reported, and
/// its siblings continue; in a scope, a failure stops the siblings.
///
///     task<> serve(net::acceptor ac) {
///         supervisor sessions{{.on_failure = report, .max_children = 1000}};
///         while (net::socket peer = co_await ac.accept())
///             co_await sessions.spawn(session(std::move(peer)), "session");
///         co_await sessions.join(5s); // ask, wait, then destroy
///     }
///
/// Destroying a supervisor without joining it destroys its children, which debug builds report on
/// stderr, as with a scope: their I/O is cancelled and waited for, and their locals are destroyed.
/// A child must not destroy its own supervisor.
///
/// Threading: a supervisor belongs to the context of its first spawn(). All members must be called
/// there, except cancel() and stop_token(), which may be called from any thread. Children stay on
/// that context.
///
/// Cancellation: a stop of the task that awaits join() asks the children to stop; join() continues
/// to wait for them. A stop of the token passed to the constructor reaches them at any time.
class supervisor final : detail::nursery {
public:
    /// A stop of `outside` asks the children to stop.
    supervisor(supervisor_options options = {}, // NOLINT(*-explicit-*): supervisor s = {}
               inplace_stop_token outside = {})
        : nursery(options.max_children), on_failure_(std::move(options.on_failure)) {
        if (outside.stop_possible()) {
            outside_.emplace(outside, stop_source());
        }
    }
    /// Produces a readable compiler error.
    template <std::integral Number>
    explicit supervisor(Number) COIL_DELETE("name the option: supervisor s{{.max_children = 100}}");
    supervisor(const supervisor&) = delete;
    supervisor& operator=(const supervisor&) = delete;
    ~supervisor() {
#if COIL_ASSERTIONS
        if (size() > 0) {
            report_unjoined("a supervisor was left without co_await join()", "Join it");
        }
#endif
        outside_.reset();
        leave_joiner();
        destroy_children();
    }

    /// Starts a child: a task or any other awaitable, whose value is discarded. It first runs in a
    /// later iteration of the loop. co_await waits while max_children are running, and returns the
    /// child's handle. Without co_await the child is queued, in order and without a limit. If the
    /// awaiting task is asked to stop while it waits, the child is not started and co_await throws
    /// std::errc::operation_canceled. The name is used in messages, and shown by dump_tasks() with
    /// the place of the call.
    template <class T>
    supervised_spawn<T> spawn(task<T> work COIL_CAPTURED(this), std::string_view name = {},
                              std::source_location where = std::source_location::current()) {
        return supervised_spawn<T>(*this, std::move(work), name, where);
    }
    template <class A>
        requires(!detail::is_task<std::remove_cvref_t<A>> && awaitable<detail::kept<A>>)
    supervised_spawn<void> spawn(A&& work, std::string_view name = {},
                                 std::source_location where = std::source_location::current()) {
        return supervised_spawn<void>(
            *this, detail::await_and_discard<detail::kept<A>>(std::forward<A>(work)), name, where);
    }
#if defined(COIL_CHECK_LIFETIMES)
    /// The same for tasks inside a timeout(), on(), ...: passed by value, so that the compiler can
    /// check lifetimes.
    template <template <class...> class Combination, class... T>
        requires detail::checked_by_value<Combination<T...>>
    supervised_spawn<void> spawn(Combination<T...> work COIL_CAPTURED(this),
                                 std::string_view name = {},
                                 std::source_location where = std::source_location::current()) {
        return supervised_spawn<void>(
            *this, detail::await_and_discard<Combination<T...>>(std::move(work)), name, where);
    }
#endif

    /// Produces a readable compiler error.
    template <class A, class... Rest>
        requires(!detail::is_task<std::remove_cvref_t<A>> && !awaitable<detail::kept<A>>)
    supervised_spawn<void> spawn(A&&, Rest&&...) COIL_EXPLAIN_CHILDREN(A) {
        detail::explain_child<A>();
    }
    supervised_spawn<void> spawn(...)
        COIL_DELETE("spawn takes a task or another awaitable, and perhaps a name: s.spawn(f(), "
                    "\"name\")");
    void operator co_await() const COIL_DELETE_COPY("join it: co_await s.join()");

    /// Runs the task returned by `make`, and runs a new one each time it fails: each failure is
    /// reported, and the next attempt is delayed as `options` says. Ends when a task ends without
    /// an exception, when a stop is requested, or after options.max_restarts, with the last
    /// exception. `make` is kept until then.
    template <class Make>
        requires awaitable<std::invoke_result_t<Make&>>
    supervised_spawn<void>
    spawn_restarting(Make make, restart_options options = {}, std::string_view name = {},
                     std::source_location where = std::source_location::current()) {
        return spawn(detail::run_restarting(std::move(make), options, reporter(name, where)), name,
                     where);
    }

    /// Produces a readable compiler error.
    supervised_spawn<void> spawn_restarting(...)
        COIL_DELETE("spawn_restarting takes a function without parameters that returns a task, "
                    "and perhaps options: s.spawn_restarting(f)");

    /// Waits until all children have ended, including queued ones.
    [[nodiscard("did you forget to co_await?")]] detail::join_task<void> join() {
        return {*this, wait_until_empty()};
    }
    /// Asks all children to stop, waits for them for at most `grace`, and then destroys the
    /// remaining ones, including work they have shielded. Returns true if none was left.
    template <class Rep, class Period>
    [[nodiscard("did you forget to co_await?")]] detail::join_task<bool>
    join(std::chrono::duration<Rep, Period> grace) {
        return {*this, join_within(detail::saturated_ns(grace))};
    }
    /// Produces a readable compiler error.
    template <class Number>
        requires std::is_arithmetic_v<Number> || std::is_convertible_v<Number, const char*>
    detail::join_task<bool> join(Number)
        COIL_DELETE("pass a duration with a unit: co_await s.join(5s)");
    /// Waits for at most `limit` until all children have ended, without asking them to stop.
    /// Returns whether none is left.
    template <class Rep, class Period>
    [[nodiscard("did you forget to co_await?")]] detail::join_task<bool>
    try_join_for(std::chrono::duration<Rep, Period> limit) {
        return {*this, wait_within(detail::saturated_ns(limit))};
    }

    /// Asks all children to stop, including those spawned later. Does not wait.
    void cancel() noexcept { nursery::cancel(); }
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return nursery::stop_token(); }
    /// The number of children that have not ended, including queued ones.
    [[nodiscard]] std::size_t size() const noexcept { return nursery::size(); }
    /// The number of children so far that had to wait because of max_children.
    [[nodiscard]] std::uint64_t held_back() const noexcept { return nursery::held_back(); }

private:
    [[nodiscard]] detail::failure_reporter reporter(std::string_view name,
                                                    const std::source_location& where) {
        return {this, std::string(name), where,
                [](void* self, std::exception_ptr error, const detail::task_label& child) noexcept {
                    static_cast<supervisor*>(self)->report(std::move(error), child);
                }};
    }
    task<> wait_until_empty();
    task<bool> wait_within(std::int64_t limit_ns);
    task<bool> join_within(std::int64_t grace_ns);
    void failed(detail::child_state_base& child, std::exception_ptr error) noexcept override;
    void report(std::exception_ptr error, const detail::task_label& child) noexcept;

    failure_handler on_failure_;
    detail::late<detail::relayed_stop> outside_;
};

} // namespace coil
