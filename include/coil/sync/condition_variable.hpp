#pragma once

#include <coil/base/exchange.hpp>
#include <coil/core/task.hpp>
#include <coil/sync/detail/cv_waiters.hpp>
#include <coil/sync/detail/waiter.hpp>
#include <coil/sync/mutex.hpp>

#include <coroutine>
#include <cstddef>
#include <system_error>

namespace coil {

/// std::condition_variable for coroutines, with coil::mutex.
///
///     auto guard = co_await m.lock_guard(); // also unlocks if wait() throws
///     co_await changed.wait(m, [&] { return !queue.empty(); });
///     take(queue);
///
/// wait() unlocks the mutex, waits for a notification, and locks the mutex again before it returns
/// or throws. As with std::condition_variable, wake-ups may be spurious: wait with a predicate.
/// notify_one() resumes the oldest waiter.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. State that the predicate reads may be changed only with the mutex locked; notifying
/// does not require the mutex.
///
/// Cancellation: if the waiting task is asked to stop, wait() throws std::system_error with
/// std::errc::operation_canceled, with the mutex locked. If a notified coroutine is destroyed, its
/// notification passes to the next waiter. The same applies to a notified child that loses in a
/// when_any, unless it is the child of another combinator nested in that when_any. A coroutine that
/// is destroyed while it waits does not own the mutex; its mutex::guard, if it has one, then skips
/// the unlock.
class condition_variable {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;
    ~condition_variable() = default;

    void notify_one() noexcept { cv_waiters_.notify_one(); }
    void notify_all() noexcept { cv_waiters_.notify_all(); }

    /// Precondition: the caller owns `m`.
    auto wait(mutex& m) noexcept { return awaitable(cv_waiters_, m); }
    /// Waits until `pred()` returns true. `pred` is called with the mutex locked; its exceptions
    /// propagate.
    template <std::invocable Predicate>
    task<> wait(mutex& m, Predicate pred) {
        while (!pred()) {
            co_await wait(m);
        }
    }
    /// Produces a readable compiler error.
    void wait() COIL_DELETE("pass the mutex that the caller has locked: co_await cv.wait(m)");
    template <class Condition>
        requires(!std::invocable<Condition>)
    task<> wait(mutex&, Condition&&)
        COIL_DELETE("pass a function, which is called again: cv.wait(m, [&] { return ready; })");
    template <class Lock, class... Rest>
        requires(!std::same_as<std::remove_cvref_t<Lock>, mutex>)
    task<> wait(Lock&&, Rest&&...)
        COIL_DELETE("a coil::condition_variable waits with a coil::mutex, not with a lock or guard "
                    "of it: co_await cv.wait(m)");

private:
    using cv_waiters = detail::basic_cv_waiters<detail::sync_waiter>;

    class awaiter;

    class [[nodiscard("did you forget to co_await?")]] awaitable {
    public:
        awaitable(cv_waiters& a, mutex& m) noexcept : cv_waiters_(&a), mutex_(&m) {}
        [[nodiscard]] awaiter operator co_await() const noexcept;

    private:
        cv_waiters* cv_waiters_;
        mutex* mutex_;
    };

    cv_waiters cv_waiters_;
};

/// Waits twice: for the notification, which can be cancelled, then for the mutex, which cannot.
class condition_variable::awaiter : detail::sync_waiter {
public:
    awaiter(cv_waiters& a, mutex& m) noexcept : cv_waiters_(a), mutex_(m), relock_(*this) {
        describe<sizeof(sync_waiter)>(detail::waited_object::condition_variable);
    }
    awaiter(const awaiter&) = delete;
    awaiter& operator=(const awaiter&) = delete;
    ~awaiter() {
        if (under_way()) [[unlikely]] {
            destroyed();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        const inplace_stop_token token = detail::stop_token_of(coroutine);
        if (token.stop_requested()) [[unlikely]] {
            cancelled = true;
            return false;
        }
        guarded_ = coil::detail::exchange(mutex_.guarded_, false);
        cv_waiters_.announce();
        if (!wait_in(cv_waiters_, detail::required_loop(), coroutine, &lock_again)) {
            mutex_.guarded_ = guarded_; // notified before the mutex was unlocked
            return false;
        }
        mutex_.unlock();
        observe<awaiter>(token);
        return true;
    }

    void await_resume() {
        on_resumed();
        if (cancelled) [[unlikely]] {
            throw std::system_error(detail::wait_cancelled("condition_variable"));
        }
    }

    /// Used by combinators instead of await_resume(). The caller owns the mutex in this case, too.
    void discard() noexcept {
        on_resumed();
        if (!cancelled) {
            cv_waiters_.notify_one();
        }
    }

private:
    friend class detail::awaiter_base;
    friend class detail::sync_waiter;

    void on_resumed() noexcept {
        if (under_way()) {
            resumed();
            mutex_.guarded_ = guarded_;
        }
    }

    class relocker : public detail::sync_waiter {
    public:
        explicit relocker(awaiter& a) noexcept : owner_(a) {
            describe<0>(detail::waited_object::unknown);
        }
        relocker(const relocker&) = delete;
        relocker& operator=(const relocker&) = delete;
        ~relocker() { leave_if_under_way(); }

        /// Returns true if the mutex was locked immediately.
        [[nodiscard]] bool begin(detail::event_loop& loop) noexcept {
            return owner_.mutex_.permits_.acquire() ||
                   !wait_in(owner_.mutex_.permits_, loop, nullptr, &locked);
        }
        /// Returns true if the mutex had been handed over already.
        [[nodiscard]] bool cancel_relock() noexcept { return under_way() && abandon<relocker>(); }
        [[nodiscard]] bool waits() const noexcept { return under_way(); }

    private:
        friend class detail::sync_waiter;

        static void locked(sync_waiter& self) noexcept {
            auto& me = static_cast<relocker&>(self);
            me.end_without_resuming();
            me.owner_.end();
        }
        void cancel() noexcept { leave(owner_.mutex_.permits_); }

        awaiter& owner_;
    };

    void cancel() noexcept {
        if (!relocking_) {
            leave(cv_waiters_);
        }
    }

    static void lock_again(sync_waiter& self) noexcept {
        auto& me = static_cast<awaiter&>(self);
        me.relocking_ = true;
        if (me.relock_.begin(me.loop())) {
            me.end();
        }
    }

    void destroyed() noexcept {
        bool locked = false;
        if (!pending()) {
            locked = true;
        } else if (!relocking_) {
            static_cast<void>(abandon<awaiter>());
        } else {
            forget_coroutine();
            stop_observing(); // may deliver the mutex
            if (relock_.waits()) {
                locked = relock_.cancel_relock();
            } else {
                locked = true;
            }
            if (pending()) {
                end();
            }
        }
        if (!cancelled) { // notified, in either of the two waits
            cv_waiters_.notify_one();
        }
        if (locked && !guarded_) {
            mutex_.unlock();
        } else if (!locked && guarded_) {
            mutex_.orphans_.fetch_add(1, std::memory_order_relaxed);
        }
        leave_if_under_way();
    }

    cv_waiters& cv_waiters_;
    mutex& mutex_;
    relocker relock_;
    bool relocking_ = false;
    bool guarded_ = false;
};

inline condition_variable::awaiter
    condition_variable::awaitable::operator co_await() const noexcept {
    return {*cv_waiters_, *mutex_};
}

} // namespace coil
