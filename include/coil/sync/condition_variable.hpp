#pragma once

#include <coil/core/task.hpp>
#include <coil/sync/detail/wait_room.hpp>
#include <coil/sync/detail/waiter.hpp>
#include <coil/sync/mutex.hpp>

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <utility>

namespace coil {

namespace detail {

/// Those who wait for a notification.
///
/// Whoever has the turn may find a notification before it has seen the arrival of somebody whom it
/// is for: what is left of it then is `due_` to those who have announced themselves and not
/// arrived. At worst it wakes somebody who announced himself later, and who looks in vain.
template <class Waiter, class Atomics = std_atomics>
class basic_audience : public basic_wait_room<basic_audience<Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_audience<Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

    /// Who will wait(), before it lets go of what protects the condition.
    void announce() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
    void notify_one() noexcept {
        if (waiting_.load(std::memory_order_relaxed) > 0) {
            ones_.fetch_add(1, std::memory_order_release);
            this->signal();
        }
    }
    void notify_all() noexcept {
        if (waiting_.load(std::memory_order_relaxed) > 0) {
            all_.store(true, std::memory_order_release);
            this->signal();
        }
    }

private:
    friend room;

    void arrive(Waiter& w, told& t) noexcept {
        if (due_ > 0) { // then nobody is queued
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told&) noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }
    void look(told& t) noexcept {
        const std::size_t n = ones_.exchange(0, std::memory_order_acquire);
        const bool all = all_.exchange(false, std::memory_order_acquire);
        // Read after that: all are in it whom these notifications are for.
        const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
        due_ = all ? waiting : std::min(due_ + n, waiting);
        while (due_ > 0 && !this->queue_.empty()) {
            due_ = due_ - 1;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            t.over(this->queue_.pop());
        }
    }

    typename Atomics::template atomic<std::size_t> waiting_{0}; // announced, and not told yet
    typename Atomics::template atomic<std::size_t> ones_{0};
    typename Atomics::template atomic<bool> all_{false};
    std::size_t due_ = 0; // the turn's; not more than `waiting_`
};

} // namespace detail

/// std::condition_variable for coroutines, with coil::mutex.
///
///     co_await m.lock();
///     co_await changed.wait(m, [&] { return !queue.empty(); });
///     take(queue);
///     m.unlock();
///
/// wait() unlocks the mutex, waits for a notification, and has locked it again when it returns,
/// however it returns. As with the standard's, it may return without a notification: wait with a
/// predicate. notify_one() resumes whoever has waited longest.
///
/// Threading: any context and any thread. Who waits goes on on its own context. Change what the
/// predicate reads with the mutex held; notifying needs no mutex.
///
/// Cancellation: wait() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, with the mutex locked. A notification that a coroutine had been
/// given which is destroyed passes to the next; so does that of a when_any's loser, unless it
/// stands in a combination inside of the one that it loses in. A coroutine that is destroyed while
/// it waits does not hold the mutex; its mutex::guard, if it has one, knows.
class condition_variable {
public:
    constexpr condition_variable() noexcept = default;
    condition_variable(const condition_variable&) = delete;
    condition_variable& operator=(const condition_variable&) = delete;
    ~condition_variable() = default;

    void notify_one() noexcept { audience_.notify_one(); }
    void notify_all() noexcept { audience_.notify_all(); }

    /// The caller holds `m`.
    auto wait(mutex& m) noexcept { return awaitable(audience_, m); }
    /// Until `pred()`, which is called with the mutex locked. What it throws comes out.
    template <class Predicate>
    task<> wait(mutex& m, Predicate pred) {
        while (!pred()) {
            co_await wait(m);
        }
    }

private:
    using audience = detail::basic_audience<detail::sync_waiter>;

    class awaiter;

    class [[nodiscard("did you forget to co_await?")]] awaitable {
    public:
        awaitable(audience& a, mutex& m) noexcept : audience_(&a), mutex_(&m) {}
        [[nodiscard]] awaiter operator co_await() const noexcept;

    private:
        audience* audience_;
        mutex* mutex_;
    };

    audience audience_;
};

/// Two waits: for the notification, which may be cancelled, then for the mutex, which may not.
class condition_variable::awaiter : detail::sync_waiter {
public:
    awaiter(audience& a, mutex& m) noexcept : audience_(a), mutex_(m), relock_(*this) {}
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
        guarded_ = std::exchange(mutex_.guarded_, false);
        audience_.announce();
        if (!wait_in(audience_, detail::required_loop(), coroutine, &lock_again)) {
            mutex_.guarded_ = guarded_; // notified before it was unlocked
            return false;
        }
        mutex_.unlock();
        observe<awaiter>(token);
        return true;
    }

    void await_resume() {
        go_on();
        if (cancelled) [[unlikely]] {
            detail::throw_wait_cancelled("condition_variable");
        }
    }

    /// Instead of await_resume(), for code that combines awaits. The mutex is locked all the same.
    void discard() noexcept {
        go_on();
        if (!cancelled) {
            audience_.notify_one();
        }
    }

private:
    friend class detail::wait_base;
    friend class detail::sync_waiter;

    void go_on() noexcept {
        if (under_way()) {
            resumed();
            mutex_.guarded_ = guarded_;
        }
    }

    class relocker : public detail::sync_waiter {
    public:
        explicit relocker(awaiter& a) noexcept : owner_(a) {}

        /// True: locked at once.
        [[nodiscard]] bool begin(detail::event_loop& loop) noexcept {
            return owner_.mutex_.permits_.acquire() ||
                   !wait_in(owner_.mutex_.permits_, loop, nullptr, &locked);
        }
        /// True: the mutex had been given to it.
        [[nodiscard]] bool give_up() noexcept { return under_way() && abandon<relocker>(); }
        [[nodiscard]] bool waits() const noexcept { return under_way(); }

    private:
        friend class detail::sync_waiter;

        static void locked(sync_waiter& self) noexcept {
            auto& me = static_cast<relocker&>(self);
            me.end_silently();
            me.owner_.end();
        }
        void cancel() noexcept { leave(owner_.mutex_.permits_); }

        awaiter& owner_;
    };

    void cancel() noexcept {
        if (!relocking_) {
            leave(audience_);
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
            stop_observing(); // which may deliver the mutex
            if (relock_.waits()) {
                locked = relock_.give_up();
            } else {
                locked = true;
            }
            if (pending()) {
                end();
            }
        }
        if (!cancelled) { // it was notified, in whichever of the two waits it was
            audience_.notify_one();
        }
        if (locked && !guarded_) {
            mutex_.unlock();
        } else if (!locked && guarded_) {
            mutex_.orphans_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    audience& audience_;
    mutex& mutex_;
    relocker relock_;
    bool relocking_ = false;
    bool guarded_ = false;
};

inline condition_variable::awaiter
    condition_variable::awaitable::operator co_await() const noexcept {
    return {*audience_, *mutex_};
}

} // namespace coil
