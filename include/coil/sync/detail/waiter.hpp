#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/described_wait.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/detail/backoff.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

namespace coil::detail {

/// An exception with std::errc::operation_canceled: "coil: NAME: the task was asked to stop". This
/// function does not throw it, so that fewer frames are unwound: see throw_if_cancelled().
[[nodiscard]] const std::system_error& wait_cancelled(const char* name);

/// A coroutine that waits in a basic_wait_queue; part of its frame. The owner of the combining lock
/// may access it from any thread until all outstanding notices have been delivered. They are
/// delivered on the waiter's own thread.
///
/// The constructor writes nothing but what the base class needs: most awaits complete immediately,
/// and the members are initialised when a wait begins (describe(), then wait_in()).
class sync_waiter : public described_wait {
public:
    using lock_node = queue_node;
    struct notice : queue_node {
        sync_waiter* waiter;
    };

    // Protected by the combining lock from wait() until delivery, as are `queued` and `cancelled`.
    notice enqueue_notice;
    notice cancel_notice;
    sync_waiter* later;
    sync_waiter* earlier;

    /// The loop that runs on this thread, as the user of a basic_bias.
    [[nodiscard, gnu::always_inline]] static std::uintptr_t this_user() noexcept {
        return reinterpret_cast<std::uintptr_t>(current_loop);
    }

    /// May be called by any thread that may access the waiter.
    [[nodiscard]] bool is_here() const noexcept { return loop().on_owner_thread(); }

    /// May be called from any thread. The waiter may be destroyed when this returns.
    void notify(notice& n) noexcept {
        event_loop& owner = loop();
        if (owner.on_owner_thread()) {
            take(n);
            return;
        }
        n.deliver = [](queue_node& posted, event_loop&) noexcept {
            auto& arrived = static_cast<notice&>(posted);
            arrived.waiter->take(arrived);
        };
        owner.post(n);
    }

    /// Ends the program with a message: `queue` was destroyed while this waits in it. Returns if
    /// the queue is part of a static variable.
    [[gnu::cold]] void queue_destroyed(const void* queue) const noexcept;

protected:
    sync_waiter() noexcept {} // NOLINT(*-member-init,*-equals-default)
    ~sync_waiter() = default;

    /// Called at the end of the wait instead of resuming the coroutine.
    using continuation = void (*)(sync_waiter&) noexcept;

    /// Starts to wait in `queue`, after describe(). Returns false if the wait is already complete.
    template <class Queue>
    [[nodiscard]] bool wait_in(Queue& queue, event_loop& loop, std::coroutine_handle<> coroutine,
                               continuation then = nullptr) noexcept {
        begin(loop, coroutine, wait_kind::sync);
        enqueue_notice.waiter = this;
        cancel_notice.waiter = this;
        then_ = then;
        completed_ = false;
        leaving_ = false;
        ack_due_ = false;
        beginning_ = true;
        queue.wait(*this);
        beginning_ = false;
        if (completed_) {
            resumed();
            return false;
        }
        return true;
    }

    /// Implements cancel() of a derived class. Owner thread.
    template <class Queue>
    void leave(Queue& queue) noexcept {
        if (pending() && !leaving_) {
            leaving_ = true;
            ack_due_ = true;
            queue.leave(*this);
        }
    }

    /// Called by a derived class's destructor if under_way(); ends the wait. Returns true if what
    /// the coroutine waited for was already assigned to it and must be returned.
    template <class Self>
    [[nodiscard]] bool abandon() noexcept {
        if (pending()) {
            if (!loop().on_owner_thread()) {
                end_with_misuse("a coroutine that waits for a mutex, a channel or the like was "
                                "destroyed on a thread other than its context's.");
            }
            forget_coroutine();
            then_ = nullptr;
            stop_observing();
            static_cast<Self&>(*this).cancel();
            for (backoff wait; pending(); wait.once_more()) {
                // the notice is in the inbox or will be there within a few instructions
                loop().deliver_inbox();
            }
        }
        return !cancelled;
    }

    /// Ends a wait whose continuation was called.
    void end() noexcept { finish(); }
    /// Ends a wait without resuming a coroutine.
    void end_without_resuming() noexcept { resumed(); }
    /// The coroutine that end() would resume is being destroyed.
    void forget_coroutine() noexcept { node().coroutine = nullptr; }

private:
    /// Owner thread.
    void take(const notice& n) noexcept {
        if (&n == &enqueue_notice) {
            completed_ = true;
        } else {
            ack_due_ = false;
            completed_ = completed_ || cancelled;
        }
        if (!completed_ || ack_due_ || beginning_) {
            return;
        }
        if (then_ != nullptr) {
            then_(*this);
        } else {
            finish();
        }
    }

    continuation then_;
    bool completed_;
    bool leaving_;
    bool ack_due_;
    bool beginning_;
};

/// The awaiter of a primitive. `Self` provides
/// - `bool take_now()`: the fast path, which completes the wait immediately if possible;
/// - `void leave_fast_path()` (optional): initialises what an await that completes immediately
///   does not need; called once, before every other function but take_now(), and followed by
///   touch(). Needs an `is_untouched()` and a `touch()` of Waiter;
/// - `bool take_with_lock()` (optional): a second attempt, before the coroutine waits;
/// - `auto& queue()`: the queue to wait in otherwise;
/// - `void give_back()`: returns a permit, lock or element that was assigned to the coroutine and
///   will not be used;
/// - `bool can_give_back()` (optional): whether the result of take_now() may be given back;
/// - `waits_for`: the primitive;
/// - a reference to the primitive, or to a part of it, as its first data member;
/// - `gives_back`: whether a coroutine that is asked to stop before it resumes calls give_back().
///
/// An await that completes immediately leaves the waiter fresh and uninitialised.
template <class Self, class Waiter = sync_waiter>
class sync_awaiter : protected Waiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        // ends the program if there is no context, even if this await would not wait
        event_loop& loop = required_loop();
        const inplace_stop_token token = stop_token_of(coroutine);
        if (token.stop_requested()) [[unlikely]] {
            return refuse();
        }
        if (self().take_now()) [[likely]] {
            if (loop.spend_immediate_await()) [[likely]] {
                return false;
            }
            return requeue(loop, coroutine, token);
        }
        return wait(loop, coroutine, token);
    }

    // Used by combinators when the wait is over. The result may stay here until await_resume() or
    // discard() is called.

    /// Returns whether await_resume() will throw. A later stop does not change the answer.
    [[nodiscard]] bool has_failed() noexcept { return !succeeded(); }
    /// Gives back an unused result.
    void discard() noexcept {
        const bool is_unused = !was_cancelled();
        touch_once();
        this->resumed();
        this->cancelled = !is_unused;
        if (is_unused) {
            self().give_back();
        }
    }

protected:
    template <class... Args>
    explicit sync_awaiter(Args&&... args) noexcept // NOLINT(*-member-init)
        : Waiter(std::forward<Args>(args)...) {}
    /// Self's destructor must call end_wait() first.
    ~sync_awaiter() = default;

    void touch_once() noexcept {
        if constexpr (requires { self().leave_fast_path(); }) {
            if (this->is_untouched()) {
                self().leave_fast_path();
                this->touch();
            }
        }
    }
    void end_wait() noexcept {
        if (this->under_way()) [[unlikely]] {
            if (this->template abandon<Self>()) {
                self().give_back();
            }
            this->leave_if_under_way();
        }
    }

    /// Called by await_resume(). Returns true if the wait succeeded. A coroutine that is asked to
    /// stop before it resumes gives back what was assigned to it, so that nothing is lost. Later
    /// calls return the same.
    [[nodiscard]] bool succeeded() noexcept { return this->is_fresh() || wait_succeeded(); }
    /// For await_resume(): throws if the wait was cancelled. `name`: see wait_cancelled(). Inlined,
    /// as await_resume() should be, because most awaits do not wait. The exception is then thrown
    /// in the coroutine itself: every further frame to unwind would make a cancellation about a
    /// quarter slower.
    [[gnu::always_inline]] void throw_if_cancelled(const char* name) {
        if (!succeeded()) [[unlikely]] {
            throw std::system_error(wait_cancelled(name));
        }
    }
    [[nodiscard]] bool was_cancelled() const noexcept {
        return !this->is_fresh() && this->cancelled;
    }

private:
    friend class awaiter_base;
    friend class sync_waiter;

    // The following implement await_suspend() for an await that does not complete immediately; they
    // return its result.

    /// A stop was requested before the await.
    [[gnu::cold, gnu::noinline]] bool refuse() noexcept {
        touch_once();
        this->resumed();
        this->cancelled = true;
        return false;
    }
    [[gnu::noinline]] bool wait(event_loop& loop, std::coroutine_handle<> coroutine,
                                inplace_stop_token token) noexcept {
        touch_once();
        if constexpr (requires { self().take_with_lock(); }) {
            if (self().take_with_lock()) {
                return !loop.spend_immediate_await() && requeue(loop, coroutine, token);
            }
        }
        prepare(token);
        if (!this->wait_in(self().queue(), loop, coroutine)) {
            return false;
        }
        this->template observe<Self>(token);
        return true;
    }
    /// Suspends a coroutine whose wait has succeeded already, and queues it behind the other ready
    /// ones. Returns false, without suspending it, if its result could not be given back.
    [[gnu::cold, gnu::noinline]] bool requeue(event_loop& loop, std::coroutine_handle<> coroutine,
                                              inplace_stop_token token) noexcept {
        touch_once();
        if constexpr (requires { self().can_give_back(); }) {
            if (!self().can_give_back()) {
                return false;
            }
        }
        prepare(token);
        this->begin(loop, coroutine, wait_kind::sync);
        this->finish_unobserved();
        loop.make_ready(this->node(), coroutine);
        return true;
    }

    void prepare(inplace_stop_token token) noexcept {
        constexpr bool is_plain = alignof(sync_awaiter) == alignof(void*);
        this->template describe<is_plain ? sizeof(sync_awaiter) : 0>(Self::waits_for);
        std::construct_at(&token_, token);
    }

    [[gnu::noinline]] bool wait_succeeded() noexcept {
        const bool waited = this->under_way();
        this->resumed();
        if (this->cancelled) [[unlikely]] {
            return false;
        }
        if constexpr (Self::gives_back) {
            if (waited && token_.stop_requested()) [[unlikely]] {
                this->cancelled = true;
                self().give_back();
                return false;
            }
        }
        return true;
    }

    Self& self() noexcept { return static_cast<Self&>(*this); }
    void cancel() noexcept { this->leave(self().queue()); }

    union {
        inplace_stop_token token_; // of a wait
    };
};

/// The awaitable of a member function: plain data that may be moved. Nothing happens before it is
/// awaited.
template <class Awaiter, class Source>
class [[nodiscard("did you forget to co_await?")]] sync_awaitable
    : public not_its_result<sync_awaitable<Awaiter, Source>> {
public:
    explicit sync_awaitable(Source& source) noexcept : source_(&source) {}

    [[nodiscard]] Awaiter operator co_await() const noexcept { return Awaiter(*source_); }

private:
    Source* source_;
};

} // namespace coil::detail
