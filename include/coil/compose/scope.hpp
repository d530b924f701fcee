#pragma once

#include <coil/compose/child.hpp>
#include <coil/compose/child_group.hpp>
#include <coil/compose/children.hpp>
#include <coil/compose/detail/scope_child.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/promise.hpp>
#include <coil/core/task.hpp>
#include <coil/core/this_task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
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
/// that have not ended: their I/O is cancelled and waited for, and their locals are destroyed. A
/// join_handle's task is not destroyed; it is asked to stop and ends by itself. A coroutine that is
/// waiting in join() then resumes with std::errc::operation_canceled. A child must not destroy its
/// own scope.
///
/// Threading: a scope belongs to the context of its first spawn(), on which all its children run.
/// spawn(), join() and the destructor must be called there; cancel() and stop_token() from any
/// thread. Children stay on that context: resume_on() in a child throws std::logic_error.
///
/// Cancellation: a stop of the task that awaits join() reaches the children while it waits. The
/// token passed to the constructor reaches them at any time: `scope s(co_await
/// this_task::stop_token());`.
class scope final : detail::scope_stop, detail::root_observer {
public:
    scope() noexcept : root_observer(stop_.get_token(), false, true) {}
    explicit scope(inplace_stop_token outside) noexcept : scope() {
        outside_.emplace(outside, stop_);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

    /// Starts a child: a task or any other awaitable. It first runs in a later iteration of the
    /// loop. Its value, if any, is discarded.
    template <class A>
        requires awaitable<detail::kept<A>>
    void spawn(A&& work) {
        static_assert(detail::can_be_kept<A>,
                      "an awaitable that cannot be moved is passed by name: auto x = "
                      "eager(op); s.spawn(x)");
        static_assert(!is_named_task<A>, "a task is spawned once: write s.spawn(std::move(t)), or "
                                         "s.spawn(f()) directly");
        if constexpr (std::same_as<A, task<>>) {
            start(std::move(work));
        } else if constexpr (detail::is_join_handle<A>) {
            start(detail::join_and_discard(detail::sole_handle(std::move(work))));
        } else if constexpr (!is_named_task<A>) {
            start(detail::await_and_discard<detail::kept<A>>(std::forward<A>(work)));
        }
    }

    /// Produces a readable compiler error.
    template <class A>
        requires(!awaitable<detail::kept<A>>)
    void spawn(A&&) {
        detail::explain_child<A>();
    }

    class joiner;
    /// Waits until all children have ended; throws the first exception. At most one coroutine at a
    /// time may wait.
    [[nodiscard("did you forget to co_await?")]] joiner join() noexcept;

    /// Asks all children to stop, from any thread. Does not wait.
    void cancel() noexcept { stop_.request_stop(); }
    /// The stop token of the children.
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return token; }
    /// The number of children that have not ended.
    [[nodiscard]] std::size_t size() const noexcept { return running_; }

private:
    template <class T>
    static constexpr bool is_named_task = false;

    void start(task<> work);
    void finished(detail::promise_base& root) noexcept override;
    void abandoned(detail::promise_base&) noexcept override {} // not in any context's list
    [[nodiscard]] detail::promise_base* awaiting_root() const noexcept override;
    void fail(std::exception_ptr error) noexcept;
    void settle_on(detail::event_loop& loop) noexcept;
    void destroy(detail::promise_base& root) noexcept;
    void check_unjoined() const noexcept;

    detail::root_chain children_;
    std::size_t running_ = 0;
    detail::event_loop* loop_ = nullptr; // set while there are children
    joiner* joiner_ = nullptr;           // the waiting one
    std::exception_ptr error_;
    bool failed_ = false;
    std::optional<detail::relayed_stop> outside_;
};

template <class T>
inline constexpr bool scope::is_named_task<task<T>&> = true;
template <class T>
inline constexpr bool scope::is_named_task<const task<T>&> = true;

/// The awaitable returned by scope::join().
class [[nodiscard("did you forget to co_await?")]] scope::joiner final : detail::ready_node,
                                                                         detail::stop_relay,
                                                                         detail::nested_await {
public:
    explicit joiner(scope& s) noexcept : scope_(&s) {}
    joiner(joiner&& other) noexcept : scope_(other.scope_) {} // only before it is awaited
    joiner& operator=(joiner&&) = delete;
    ~joiner();

    [[nodiscard]] bool await_ready() const noexcept {
        scope_->check_unjoined();
        return scope_->running_ == 0;
    }
    template <class P>
    void await_suspend(std::coroutine_handle<P> waiter) noexcept {
        if constexpr (std::derived_from<P, detail::promise_base>) {
            awaiting_ = &waiter.promise();
            if (is_inside(waiter)) {
                awaiting_->awaits(*this);
            }
        }
        begin(waiter, detail::stop_token_of(waiter));
    }
    void await_resume();

private:
    friend class scope;
    void begin(std::coroutine_handle<> waiter, inplace_stop_token token) noexcept;
    void wake() noexcept;
    void unwake() noexcept;
    void left_alone(std::exception_ptr error) noexcept;
    [[nodiscard]] bool is_inside(std::coroutine_handle<> waiter) const noexcept;
    detail::promise_base* next_below() noexcept override;
    void destroy_below(detail::promise_base& child) noexcept override;

    scope* scope_; // null once the scope was destroyed
    std::coroutine_handle<> waiter_;
    detail::promise_base* awaiting_ = nullptr; // null if it is not a task
    std::exception_ptr error_;                 // set when the scope was destroyed
    detail::event_loop* woken_on_ = nullptr;   // set while it is in the ready queue
};

inline scope::joiner scope::join() noexcept { return joiner(*this); }

inline detail::promise_base* scope::awaiting_root() const noexcept {
    return loop_->on_owner_thread() && joiner_ != nullptr && joiner_->awaiting_ != nullptr
               ? joiner_->awaiting_->root()
               : nullptr;
}

} // namespace coil
