#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/context/detail/described_wait.hpp>
#include <coil/context/event_loop.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/backoff.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

/// Throws std::system_error with std::errc::operation_canceled: "coil: NAME: the task was asked to
/// stop".
[[noreturn]] void throw_wait_cancelled(const char* name);

/// A coroutine that waits in a basic_wait_queue; part of its frame. The owner of the combining lock
/// may access it from any thread until all outstanding notices were delivered. They are delivered
/// on the waiter's own thread.
class sync_waiter : public described_wait {
public:
    using lock_node = queue_node;
    struct notice : queue_node {
        explicit notice(sync_waiter* w) noexcept : waiter(w) {}
        sync_waiter* waiter;
    };

    // Protected by the combining lock from wait() until delivery, as are `queued` and `cancelled`.
    notice enqueue_notice{this};
    notice cancel_notice{this};
    sync_waiter* later = nullptr;
    sync_waiter* earlier = nullptr;

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

    /// Ends the program with a message: `queue` is destroyed while this waits there. Returns if the
    /// queue is part of a static variable.
    [[gnu::cold]] void queue_destroyed(const void* queue) const noexcept;

protected:
    sync_waiter() noexcept = default;
    ~sync_waiter() = default;

    /// Called at the end of the wait instead of resuming the coroutine.
    using continuation = void (*)(sync_waiter&) noexcept;

    /// Starts to wait in `queue`. Returns false if the wait is already complete.
    template <class Queue>
    [[nodiscard]] bool wait_in(Queue& queue, event_loop& loop, std::coroutine_handle<> coroutine,
                               continuation then = nullptr) noexcept {
        begin(loop, coroutine, wait_kind::sync);
        then_ = then;
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
                // the notice is in the inbox or will be in a few instructions
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

    continuation then_ = nullptr;
    bool completed_ = false;
    bool leaving_ = false;
    bool ack_due_ = false;
    bool beginning_ = false;
};

/// The awaiter of a primitive. `Self` provides
/// - `bool take_now()`: completes the wait at once if possible;
/// - `auto& queue()`: the queue to wait in otherwise;
/// - `void give_back()`: returns a permit, lock or element that was assigned to the coroutine and
///   will not be used;
/// - `bool can_give_back()` (optional): whether the result of take_now() may be given back;
/// - `waits_for`: the primitive;
/// - a reference to the primitive, or to a part of it, as its first data member;
/// - `gives_back`: whether a coroutine that is asked to stop before it resumes calls give_back().
template <class Self, class Waiter = sync_waiter>
class sync_awaiter : protected Waiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        // checked even if there is no need to wait, so that misuse never goes undetected
        event_loop& loop = required_loop();
        token_ = stop_token_of(coroutine);
        if (token_.stop_requested()) [[unlikely]] {
            this->cancelled = true;
            return false;
        }
        if (self().take_now()) {
            return !loop.spend_immediate_await() && requeue(loop, coroutine);
        }
        if (!this->wait_in(self().queue(), loop, coroutine)) {
            return false;
        }
        this->template observe<Self>(token_);
        return true;
    }

    // Used by combinators when the wait is over. The result may stay here until await_resume() or
    // discard() is called.

    /// Returns whether await_resume() will throw. A later stop does not change the answer.
    [[nodiscard]] bool has_failed() noexcept { return !succeeded(); }
    /// Gives back an unused result.
    void discard() noexcept {
        this->resumed();
        if (!this->cancelled) {
            self().give_back();
        }
    }

protected:
    template <class... Args>
    explicit sync_awaiter(Args&&... args) noexcept : Waiter(std::forward<Args>(args)...) {
        constexpr bool is_plain = alignof(sync_awaiter) == alignof(void*);
        this->template describe<is_plain ? sizeof(sync_awaiter) : 0>(Self::waits_for);
    }
    /// Self's destructor must call end_wait() first.
    ~sync_awaiter() = default;

    void end_wait() noexcept {
        if (this->under_way()) [[unlikely]] {
            if (this->template abandon<Self>()) {
                self().give_back();
            }
        }
    }

    /// Called by await_resume(). Returns true if the wait succeeded. A coroutine that is asked to
    /// stop before it resumes gives back what was assigned to it, so that nothing is lost. Later
    /// calls return the same.
    [[nodiscard]] bool succeeded() noexcept {
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

private:
    friend class awaiter_base;
    friend class sync_waiter;

    /// Suspends a coroutine that has what it waits for, behind the other ready ones. Returns false
    /// if it cannot, because what it has could not be given back.
    [[gnu::cold, gnu::noinline]] bool requeue(event_loop& loop,
                                              std::coroutine_handle<> coroutine) noexcept {
        if constexpr (requires { self().can_give_back(); }) {
            if (!self().can_give_back()) {
                return false;
            }
        }
        this->begin(loop, coroutine, wait_kind::sync);
        this->finish_unobserved();
        loop.make_ready(this->node(), coroutine);
        return true;
    }

    Self& self() noexcept { return static_cast<Self&>(*this); }
    void cancel() noexcept { this->leave(self().queue()); }

    inplace_stop_token token_;
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
