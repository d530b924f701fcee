#pragma once

#include <coil/base/exchange.hpp>
#include <coil/sync/detail/permit_awaiter.hpp>
#include <coil/sync/detail/std_locks.hpp>

#include <atomic>
#include <coroutine>
#include <system_error>

namespace coil {

/// std::mutex for coroutines. A waiting coroutine is suspended; its thread keeps running others.
/// The owner may await anything while it holds the mutex, and may unlock it on a different context
/// from the one on which it locked it.
///
///     coil::mutex m;
///     {
///         auto guard = co_await m.lock_guard();
///         co_await append(log, entry);
///     }
///
/// unlock() hands the mutex to a waiter; coroutines that arrive later queue up behind the others.
/// Waiters of one context are served first come, first served. With waiters of several contexts the
/// mutex stays on one context for a while, because a hand-over within a context is many times
/// cheaper: the next owner is the first of the eight oldest waiters that belongs to the unlocking
/// context, or else the oldest waiter. The oldest waiter is passed over at most 32 times in a row.
/// Not recursive.
///
/// Threading: all members may be called from any context and any thread. A waiter resumes on its
/// own context. The mutex may be destroyed as soon as it is unlocked and no coroutine waits for it,
/// even by the coroutine that was the last to unlock it.
///
/// Cancellation: if the waiting task is asked to stop, lock() throws std::system_error with
/// std::errc::operation_canceled and does not lock. If a coroutine is destroyed after it was handed
/// the mutex and before it resumes, the mutex passes to the next waiter.
class mutex {
public:
    class guard;

    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex() = default;
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("lock it: co_await m.lock()");

    /// co_await returns void; the caller then owns the mutex.
    auto lock() noexcept { return detail::sync_awaitable<lock_awaiter, mutex>(*this); }
    /// Does not wait. Returns true if the caller now owns the mutex.
    [[nodiscard]] bool try_lock() noexcept { return permits_.try_acquire(); }
    /// Called by the owner, from any thread. Unlocking a mutex that is not locked terminates the
    /// program with a message.
    void unlock() noexcept {
        holder_.note(nullptr);
        if (permits_.release() > 0) [[unlikely]] {
            detail::end_with_misuse("unlock() of a mutex that is not locked.");
        }
    }

    /// co_await returns a guard that unlocks the mutex when it is destroyed.
    auto lock_guard() noexcept { return detail::sync_awaitable<guard_awaiter, mutex>(*this); }

private:
    class lock_awaiter;
    class guard_awaiter;
    friend class condition_variable;

    /// If there are orphans (see orphans_), this guard consumes one and leaves the mutex locked. A
    /// later guard finds no orphan and unlocks on behalf of both; everything the first owner did
    /// happens before that unlock.
    void unlock_by_guard() noexcept {
        unsigned orphans = orphans_.load(std::memory_order_acquire);
        while (orphans > 0) {
            if (orphans_.compare_exchange_weak(orphans, orphans - 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
                return;
            }
        }
        guarded_ = false;
        unlock();
    }

    detail::lock_holder holder_; // the first member
    detail::permits permits_{1};
    /// The number of guards that refer to the mutex although their coroutine does not own it,
    /// because it was destroyed while it waited on a condition_variable. Any guard may skip its
    /// unlock on behalf of such a guard, because only the number of unlocks matters.
    std::atomic<unsigned> orphans_{0};
    bool guarded_ = false; // protected by the mutex: whether the owner has a guard
};

/// Owns a locked mutex and unlocks it on destruction. Move-only.
class [[nodiscard("the mutex is unlocked at once")]] mutex::guard {
public:
    guard() noexcept = default;
    /// Adopts a mutex that the caller owns.
    explicit guard(mutex& held) noexcept : mutex_(&held) { held.guarded_ = true; }
    guard(guard&& other) noexcept : mutex_(coil::detail::exchange(other.mutex_, nullptr)) {}
    guard& operator=(guard&& other) noexcept {
        if (this != &other) {
            unlock();
            mutex_ = coil::detail::exchange(other.mutex_, nullptr);
        }
        return *this;
    }
    ~guard() { unlock(); }

    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// Unlocks early. No effect if the guard owns no mutex.
    void unlock() noexcept {
        if (mutex* const held = coil::detail::exchange(mutex_, nullptr)) {
            held->unlock_by_guard();
        }
    }
    /// Gives up ownership without unlocking.
    mutex* release() noexcept {
        if (mutex_ != nullptr) {
            mutex_->guarded_ = false;
        }
        return coil::detail::exchange(mutex_, nullptr);
    }

private:
    mutex* mutex_ = nullptr;
};

class mutex::lock_awaiter : public detail::sync_awaiter<lock_awaiter> {
public:
    explicit lock_awaiter(mutex& source) noexcept // NOLINT(*-member-init)
        : source_(source) {}
    ~lock_awaiter() { this->end_wait(); }

    template <class P>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        root_ = detail::nearest_root(coroutine);
        return sync_awaiter::await_suspend(coroutine);
    }
    // A template: if coil is used as a module, only templates can always be inlined.
    template <class = void>
    [[gnu::always_inline]] void await_resume() {
        this->throw_if_cancelled("mutex");
        source_.holder_.note(root_);
    }

protected:
    mutex& source_; // the first member

private:
    friend class detail::sync_awaiter<lock_awaiter>;

    static constexpr detail::waited_object waits_for = detail::waited_object::mutex;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept { return source_.permits_.acquire(); }
    [[nodiscard]] detail::permits& queue() noexcept { return source_.permits_; }
    void give_back() noexcept { source_.permits_.release(); }

    const detail::promise_base* root_; // valid from await_suspend() on
};

class mutex::guard_awaiter : public lock_awaiter {
public:
    using lock_awaiter::lock_awaiter;

    template <class = void>
    [[gnu::always_inline]] guard await_resume() {
        lock_awaiter::await_resume();
        return guard(source_);
    }
};

} // namespace coil
