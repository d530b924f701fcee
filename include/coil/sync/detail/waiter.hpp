#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/context/wait.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/patience.hpp>
#include <coil/core/this_task.hpp>

#include <coroutine>
#include <utility>

namespace coil::detail {

/// Throws std::system_error with std::errc::operation_canceled: "coil: NAME: the task was asked to
/// stop".
[[noreturn]] void throw_wait_cancelled(const char* name);

/// A coroutine that waits in a basic_wait_room; part of its frame. Whoever has the turn may touch
/// it, from any thread, until it was told all that is outstanding; it is told on its own thread.
class sync_waiter : public wait_base {
public:
    using turn_node = queue_node;
    struct notice : queue_node {
        explicit notice(sync_waiter* w) noexcept : waiter(w) {}
        sync_waiter* waiter;
    };

    // The turn's, between wait() and being told.
    notice arrival{this};
    notice departure{this};
    sync_waiter* later = nullptr;
    sync_waiter* earlier = nullptr;
    bool queued = false;
    /// It has left without what it waited for.
    bool cancelled = false;

    /// Any thread that may touch it.
    [[nodiscard]] bool is_here() const noexcept { return loop().on_owner_thread(); }

    /// Any thread; the waiter may be gone when this returns.
    void tell(notice& n) noexcept {
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

protected:
    sync_waiter() noexcept = default;
    ~sync_waiter() = default;

    /// Instead of resuming the coroutine, when the wait is over.
    using continuation = void (*)(sync_waiter&) noexcept;

    /// Begins to wait in `room`. False: it is over already.
    template <class Room>
    [[nodiscard]] bool wait_in(Room& room, event_loop& loop, std::coroutine_handle<> coroutine,
                               continuation then = nullptr) noexcept {
        begin(loop, coroutine);
        then_ = then;
        beginning_ = true;
        room.wait(*this);
        beginning_ = false;
        if (over_) {
            resumed();
            return false;
        }
        return true;
    }

    /// What cancel() of a derived class does. Owner thread.
    template <class Room>
    void leave(Room& room) noexcept {
        if (pending() && !leaving_) {
            leaving_ = true;
            answer_due_ = true;
            room.leave(*this);
        }
    }

    /// A derived class's destructor, when under_way(): ends the wait. True: what was waited for had
    /// been given, and nobody will take it.
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
            for (patience wait; pending(); wait.once_more()) {
                loop().deliver_inbox(); // the notice is there, or a few instructions away
            }
        }
        return !cancelled;
    }

    /// The wait went on elsewhere, and ends now.
    void end() noexcept { finish(); }
    /// The end of a wait that no coroutine waits for by itself.
    void end_silently() noexcept { resumed(); }
    /// What end() would resume is being destroyed.
    void forget_coroutine() noexcept { node().coroutine = nullptr; }

private:
    /// Owner thread.
    void take(const notice& n) noexcept {
        if (&n == &arrival) {
            over_ = true;
        } else {
            answer_due_ = false;
            over_ = over_ || cancelled;
        }
        if (!over_ || answer_due_ || beginning_) {
            return;
        }
        if (then_ != nullptr) {
            then_(*this);
        } else {
            finish();
        }
    }

    continuation then_ = nullptr;
    bool over_ = false;
    bool leaving_ = false;
    bool answer_due_ = false;
    bool beginning_ = false;
};

/// The await of a room. `Self` has
/// - `bool take_now()`: what is waited for is there, and taken;
/// - `auto& room()`: where to wait otherwise;
/// - `void give_back()`: what was taken, by a coroutine that will not use it;
/// - `gives_back`: whether a coroutine that was asked to stop before it went on will not use it.
template <class Self, class Waiter = sync_waiter>
class sync_awaiter : protected Waiter {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }

    template <class P>
    bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        event_loop& loop = required_loop(); // also where it need not wait: not by luck alone
        token_ = stop_token_of(coroutine);
        if (token_.stop_requested()) [[unlikely]] {
            this->cancelled = true;
            return false;
        }
        if (self().take_now()) {
            return false;
        }
        if (!this->wait_in(self().room(), loop, coroutine)) {
            return false;
        }
        this->template observe<Self>(token_);
        return true;
    }

    // For code that combines awaits, when the wait is over. What it has may stay here until
    // somebody calls await_resume(), or discard() instead.

    /// Whether await_resume() throws. A stop that comes later changes nothing.
    [[nodiscard]] bool has_failed() noexcept { return !succeeded(); }
    /// Nobody wants what it has.
    void discard() noexcept {
        this->resumed();
        if (!this->cancelled) {
            self().give_back();
        }
    }

protected:
    template <class... Args>
    explicit sync_awaiter(Args&&... args) noexcept : Waiter(std::forward<Args>(args)...) {}
    /// Self's destructor calls end_wait() first.
    ~sync_awaiter() = default;

    void end_wait() noexcept {
        if (this->under_way()) [[unlikely]] {
            if (this->template abandon<Self>()) {
                self().give_back();
            }
        }
    }

    /// In await_resume(): true when the coroutine has what it waited for. Who is asked to stop
    /// before it goes on gives back what it was given: so nothing is lost with one that lost a
    /// race. Asked again, it says the same.
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
    friend class wait_base;
    friend class sync_waiter;

    Self& self() noexcept { return static_cast<Self&>(*this); }
    void cancel() noexcept { this->leave(self().room()); }

    inplace_stop_token token_;
};

/// What a member function gives that is to be awaited: plain data that may be moved. Nothing
/// happens before it is awaited.
template <class Awaiter, class Source>
class [[nodiscard("did you forget to co_await?")]] sync_awaitable {
public:
    explicit sync_awaitable(Source& source) noexcept : source_(&source) {}

    [[nodiscard]] Awaiter operator co_await() const noexcept { return Awaiter(*source_); }

private:
    Source* source_;
};

} // namespace coil::detail
