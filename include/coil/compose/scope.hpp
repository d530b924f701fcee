#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/late.hpp>
#include <coil/compose/child_handle.hpp>
#include <coil/compose/detail/child.hpp>
#include <coil/compose/detail/children.hpp>
#include <coil/compose/detail/nursery.hpp>
#include <coil/compose/detail/scope_child.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/kept_function.hpp>
#include <coil/core/detail/promise.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// A nursery: children that are started one by one and end before join() returns.
///
///     task<> crawl(std::vector<std::string> urls) {
///         scope s;
///         for (const auto& url : urls)
///             s.spawn(fetch(url)); // may refer to what outlives the scope
///         co_await s.join();
///     }
///
/// A child that fails asks all other children to stop, including those spawned later. When all have
/// ended, join() throws the first exception. Further exceptions, and those of a scope that is never
/// joined, go to the context's on_unhandled_exception, except those that only say that a child was
/// cancelled (std::errc::operation_canceled). After cancel() or a stop request, join() does not
/// throw such a cancellation either.
///
/// Children may spawn more children. A scope may be joined again after more children have been
/// spawned. Once stopped, it stays stopped.
///
/// Destroying a scope without joining it, as an exception or a shutdown does, destroys the children
/// that have not ended: their I/O is cancelled and waited for, and their locals are destroyed.
/// Debug builds report this on stderr, unless it follows a cancel() or is the result of an
/// exception, a shutdown or the destruction of the coroutine. A join_handle's task is not destroyed
/// but asked to stop, and ends by itself. If a coroutine is waiting in join() when the scope is
/// destroyed, join() throws std::errc::operation_canceled. A child must not destroy its own scope.
///
/// If a child waits in on() for a task on another context, the destructor blocks this thread until
/// that context has ended its turn and destroyed the task. Destructors on several threads may block
/// on each other in a cycle. To break it, a blocked scope destructor destroys a suspended task of
/// its own context for which another destructor waits. The destructors of that task's locals then
/// run inside the scope's destructor; they must not need a lock that its caller holds. The
/// destructor of a scope that is not a local of a coroutine does not do this. join() never blocks.
///
/// Threading: a scope belongs to the context of its first spawn(), on which all its children run.
/// spawn(), join() and the destructor must be called there; cancel() and stop_token() from any
/// thread. Children stay on that context: resume_on() in a child throws std::logic_error.
///
/// Cancellation: a stop of the task that awaits join() reaches the children while it waits. The
/// token passed to the constructor reaches them at any time: `scope s(co_await
/// this_task::stop_token());`.
///
/// spawn() returns a child_handle, which may be ignored. It stops that one child or awaits its
/// result:
///
///     auto page = s.spawn(fetch(url));
///     ...
///     use(co_await page); // or page.cancel()
class scope final : detail::nursery {
public:
    scope() noexcept : nursery(static_cast<std::size_t>(-1)) {}
    explicit scope(inplace_stop_token outside) noexcept : scope() {
        outside_.emplace(outside, stop_source());
    }
    /// Produce readable compiler errors.
    template <std::integral Number>
    explicit scope(Number)
        COIL_DELETE("a scope has no options: supervisor s{{.max_children = 4}} limits the number "
                    "of children");
    template <detail::stop_source Source>
    explicit scope(Source&&)
        COIL_DELETE("pass the token of the stop source: scope s(source.get_token())");
    explicit scope(const std::stop_token&)
        COIL_DELETE("a scope takes an inplace_stop_token: co_await this_task::stop_token(), in a "
                    "task that was spawned with the std::stop_token");
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() {
#if COIL_ASSERTIONS
        if (size() > 0) {
            report_unjoined("a scope was left without co_await join()", "Join it");
        }
#endif
        end();
    }

    /// Starts a child: a task, or any other awaitable, whose value is then discarded. It first runs
    /// in a later iteration of the loop. Throws std::system_error with
    /// std::errc::operation_canceled after a child has failed: the scope is ending, and the work
    /// would be stopped immediately. The name is shown by dump_tasks(), with the place of the call,
    /// and by this_task::backtrace().
    template <class T>
    child_handle<T> spawn(task<T> work COIL_CAPTURED(this), std::string_view name = {},
                          std::source_location where = std::source_location::current()) {
        return start(std::move(work), name, where);
    }
    template <class A>
        requires(!detail::is_task<std::remove_cvref_t<A>> && awaitable<detail::kept<A>>)
    child_handle<> spawn(A&& work, std::string_view name = {},
                         std::source_location where = std::source_location::current()) {
        static_assert(detail::can_be_kept<A>,
                      "an awaitable that cannot be moved is passed by name: auto x = "
                      "eager(op); s.spawn(x)");
        if constexpr (detail::is_join_handle<A>) {
            return start(detail::join_and_discard(detail::sole_handle(std::move(work))), name,
                         where);
        } else {
            return start(detail::await_and_discard<detail::kept<A>>(std::forward<A>(work)), name,
                         where);
        }
    }

#if defined(COIL_CHECK_LIFETIMES)
    /// The same for tasks inside a timeout(), on(), ...: passed by value, so that the compiler can
    /// check lifetimes.
    template <template <class...> class Combination, class... T>
        requires detail::checked_by_value<Combination<T...>>
    child_handle<> spawn(Combination<T...> work COIL_CAPTURED(this), std::string_view name = {},
                         std::source_location where = std::source_location::current()) {
        return start(detail::await_and_discard<Combination<T...>>(std::move(work)), name, where);
    }
#endif

    /// Produces a readable compiler error.
    template <class A, class... Rest>
        requires(!detail::is_task<std::remove_cvref_t<A>> && !awaitable<detail::kept<A>>)
    child_handle<> spawn(A&&, Rest&&...) COIL_EXPLAIN_CHILDREN(A) {
        detail::explain_child<A>();
    }
    child_handle<> spawn(...)
        COIL_DELETE("spawn takes a task or another awaitable, and perhaps a name: s.spawn(f(), "
                    "\"name\")");

    class joiner; // NOLINT(*-virtual-class-destructor): it is final
    /// Waits until all children have ended; throws the first exception. At most one coroutine at a
    /// time may wait.
    [[nodiscard("did you forget to co_await?")]] joiner join() noexcept;

    /// Produce readable compiler errors.
    template <class Limit>
    joiner join(Limit&&)
        COIL_DELETE("a scope is joined without a limit: co_await timeout(s.join(), 3s)");
    void operator co_await() const COIL_DELETE_COPY("join it: co_await s.join()");

    /// Asks all children to stop, from any thread. Does not wait.
    void cancel() noexcept { nursery::cancel(); }
    /// The stop token of the children. A child that fails requests a stop, so an owner that passes
    /// the token to its own awaits learns of it at once: `co_await with_stop_token(op,
    /// s.stop_token())`.
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return nursery::stop_token(); }
    /// The number of children that have not ended.
    [[nodiscard]] std::size_t size() const noexcept { return nursery::size(); }
    /// Whether a child has failed. join() then throws, and spawn() refuses further work.
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    template <class T>
    child_handle<T> start(task<T>&& work, std::string_view name,
                          const std::source_location& where) {
        check_not_failed();
        auto* const child = new detail::child_state<T>(std::move(work), name, where);
        child_handle<T> handle(*child);
        add(*child);
        return handle;
    }
    void check_not_failed() const;
    void end() noexcept;
    void failed(detail::child_state_base& child, std::exception_ptr error) noexcept override;

    std::exception_ptr error_;
    detail::owned<const detail::task_name> failed_name_; // of the child that has thrown error_
    bool failed_ = false;
    detail::late<detail::relayed_stop> outside_;
};

/// The awaitable returned by scope::join().
class [[nodiscard("did you forget to co_await?")]] scope::joiner final
    : public detail::nursery::joiner {
public:
    explicit joiner(scope& s) noexcept : detail::nursery::joiner(s), scope_(&s) {}
    joiner(joiner&&) noexcept = default; // only before it is awaited
    joiner& operator=(joiner&&) = delete;
    ~joiner() = default;

    void await_resume();
    /// Used by combinators.
    [[nodiscard]] joiner awaiter_for_child() const noexcept { return joiner(*scope_); }

private:
    scope* scope_;
};

inline scope::joiner scope::join() noexcept { return joiner(*this); }

} // namespace coil
