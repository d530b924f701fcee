#pragma once

#include <coil/compose/child.hpp>
#include <coil/compose/child_group.hpp>
#include <coil/compose/children.hpp>
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

namespace detail {

/// Before the observer that needs its token.
struct scope_stop {
    inplace_stop_source stop_;
};

/// Awaits, and gives up the result: descriptors are closed.
template <class Kept>
class discarded_await {
    using awaiter_t = awaiter_of<Kept&&>;

public:
    explicit discarded_await(std::remove_reference_t<Kept>& awaitable)
        : awaiter_(get_awaiter(static_cast<Kept&&>(awaitable))) {}

    bool await_ready() { return awaiter_.await_ready(); }
    template <class P>
    auto await_suspend(std::coroutine_handle<P> waiter) {
        return awaiter_.await_suspend(waiter);
    }
    void await_resume() {
        if constexpr (knows_failure<std::remove_reference_t<awaiter_t>>) {
            if (awaiter_.has_failed()) {
                static_cast<void>(awaiter_.await_resume());
                return;
            }
        }
        if constexpr (requires { awaiter_.discard(); }) {
            awaiter_.discard();
        } else {
            static_cast<void>(awaiter_.await_resume());
        }
    }

private:
    awaiter_t awaiter_;
};

template <class Kept>
task<> await_and_discard(Kept awaitable) {
    using object = std::remove_reference_t<Kept>;
    if constexpr (is_join_handle<std::remove_cv_t<object>>) {
        const inplace_stop_callback canceller(co_await this_task::stop_token(),
                                              cancel_joined<object>{awaitable});
        co_await discarded_await<Kept>(awaitable);
    } else {
        co_await discarded_await<Kept>(awaitable);
    }
}

/// A join_handle that a scope was given: when it goes, its task is asked to stop, whether the child
/// that awaits it has begun or not.
template <class T>
class sole_handle {
public:
    explicit sole_handle(join_handle<T>&& handle) noexcept : handle_(std::move(handle)) {}
    sole_handle(sole_handle&& other) noexcept
        : handle_(std::move(other.handle_)), mine_(std::exchange(other.mine_, false)) {}
    sole_handle& operator=(sole_handle&&) = delete;
    ~sole_handle() {
        if (mine_) {
            handle_.cancel();
        }
    }

    [[nodiscard]] join_handle<T>& get() noexcept { return handle_; }

private:
    join_handle<T> handle_;
    bool mine_ = true;
};

template <class T>
task<> join_and_discard(sole_handle<T> handle) {
    const inplace_stop_callback canceller(co_await this_task::stop_token(),
                                          cancel_joined<join_handle<T>>{handle.get()});
    co_await discarded_await<join_handle<T>>(handle.get());
}

} // namespace detail

/// A nursery: tasks that are started one by one and end before join() does.
///
///     task<> crawl(std::vector<std::string> urls) {
///         scope s;
///         for (const auto& url : urls)
///             s.spawn(fetch(url)); // may refer to what outlives the scope
///         co_await s.join();
///     }
///
/// A child that fails asks all the others to stop, and what is spawned from then on as well. When
/// all have ended, join() throws the first exception. Of further ones, and of those that an
/// unjoined scope is left with, the ones that only say that a child was cancelled
/// (std::errc::operation_canceled) are dropped, the others go to the context's
/// on_unhandled_exception. After cancel() or another request to stop, such an exception is nobody's
/// failure: join() does not throw it.
///
/// Children may spawn more children. A scope may be joined again after more has been spawned; once
/// stopped, it stays stopped.
///
/// Destroying a scope without joining it, as an exception in between or a shutdown does, destroys
/// the children that have not ended where they stand: their I/O is cancelled and waited for, their
/// locals are destroyed, nothing of them is left. (So does destroying any frame that is suspended.)
/// The task of a join_handle that it was given is no part of it: it is asked to stop, as by a
/// when_all that is destroyed, and ends by itself. A coroutine that waits in join() meanwhile goes
/// on, with std::errc::operation_canceled. A child must not destroy its own scope.
///
/// Threading: it belongs to the context on which its children run, that of the first spawn();
/// spawn(), join() and the destructor there only, cancel() and stop_token() from any thread.
/// Children stay on that context: resume_on() inside of one throws std::logic_error.
///
/// Cancellation: a stop of the task that awaits join() reaches the children while it waits. What
/// the constructor is given reaches them at any time: `scope s(co_await this_task::stop_token());`.
class scope final : detail::scope_stop, detail::root_observer {
public:
    scope() noexcept : root_observer(stop_.get_token(), false, true) {}
    explicit scope(inplace_stop_token outside) noexcept : scope() {
        outside_.emplace(outside, stop_);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

    /// Starts a child: a task, or anything else that can be awaited; it begins in a later turn of
    /// the loop. Its value, if any, is dropped.
    template <class A>
        requires awaitable<detail::kept<A>>
    void spawn(A&& work) {
        static_assert(detail::can_be_kept<A>, "what cannot be moved is given by its name: auto x = "
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

    /// Only for the sentence that the compiler says.
    template <class A>
        requires(!awaitable<detail::kept<A>>)
    void spawn(A&&) {
        detail::explain_child<A>();
    }

    class joiner;
    /// Waits until no child is left; throws what the first that failed has thrown. One coroutine at
    /// a time.
    [[nodiscard("did you forget to co_await?")]] joiner join() noexcept;

    /// Asks all children to stop. Any thread; returns at once.
    void cancel() noexcept { stop_.request_stop(); }
    /// What the children are asked to stop by.
    [[nodiscard]] inplace_stop_token stop_token() const noexcept { return token; }
    /// How many children have not ended.
    [[nodiscard]] std::size_t size() const noexcept { return running_; }

private:
    template <class T>
    static constexpr bool is_named_task = false;

    void start(task<> work);
    void finished(detail::promise_base& root) noexcept override;
    void abandoned(detail::promise_base&) noexcept override {} // it hangs in no context's list
    [[nodiscard]] detail::promise_base* awaiting_root() const noexcept override;
    void fail(std::exception_ptr error) noexcept;
    void settle_on(detail::event_loop& loop) noexcept;
    void destroy(detail::promise_base& root) noexcept;
    void check_unjoined() const noexcept;

    detail::root_chain children_;
    std::size_t running_ = 0;
    detail::event_loop* loop_ = nullptr; // while there are children
    joiner* joiner_ = nullptr;           // the one that waits
    std::exception_ptr error_;
    bool failed_ = false;
    std::optional<detail::relayed_stop> outside_;
};

template <class T>
inline constexpr bool scope::is_named_task<task<T>&> = true;
template <class T>
inline constexpr bool scope::is_named_task<const task<T>&> = true;

/// What scope::join() gives.
class [[nodiscard("did you forget to co_await?")]] scope::joiner final : detail::ready_node,
                                                                         detail::stop_relay,
                                                                         detail::nested_await {
public:
    explicit joiner(scope& s) noexcept : scope_(&s) {}
    joiner(joiner&& other) noexcept : scope_(other.scope_) {} // before it is awaited
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

    scope* scope_; // null when it is gone
    std::coroutine_handle<> waiter_;
    detail::promise_base* awaiting_ = nullptr; // when it is a task
    std::exception_ptr error_;                 // of a scope that is gone
    detail::event_loop* woken_on_ = nullptr;   // while it is in the ready queue
};

inline scope::joiner scope::join() noexcept { return joiner(*this); }

inline detail::promise_base* scope::awaiting_root() const noexcept {
    return loop_->on_owner_thread() && joiner_ != nullptr && joiner_->awaiting_ != nullptr
               ? joiner_->awaiting_->root()
               : nullptr;
}

} // namespace coil
