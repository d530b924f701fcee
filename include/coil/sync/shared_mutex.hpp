#pragma once

#include <coil/base/exchange.hpp>
#include <coil/sync/detail/shared_lock_awaiter.hpp>
#include <coil/sync/detail/std_locks.hpp>
#include <coil/sync/detail/waiter.hpp>

namespace coil {

/// std::shared_mutex for coroutines: one writer or any number of readers.
///
///     coil::shared_mutex m;
///     auto guard = co_await m.shared_lock_guard();      // a reader
///     auto guard = co_await m.lock_guard();             // a writer
///
/// Fair: a coroutine that arrives while others wait queues up behind them, so neither readers nor
/// writers starve. Consecutive readers in the queue lock together.
///
/// Threading: all members may be called from any context and any thread; the mutex may be unlocked
/// on a different context from the one on which it was locked. A waiter resumes on its own context.
/// The mutex must outlive every call and every wait on it.
///
/// Cancellation: if the waiting task is asked to stop, lock() and lock_shared() throw
/// std::system_error with std::errc::operation_canceled and do not lock. If a coroutine is
/// destroyed after it was handed the mutex and before it resumes, the mutex passes to the next
/// waiter.
class shared_mutex {
public:
    template <bool Shared>
    class basic_guard;
    using guard = basic_guard<false>;
    using shared_guard = basic_guard<true>;

    constexpr shared_mutex() noexcept = default;
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    ~shared_mutex() = default;
    /// Produces a readable compiler error.
    void operator co_await() const
        COIL_DELETE_COPY("lock it: co_await m.lock() or m.lock_shared()");

    /// co_await returns void; the caller then owns the mutex exclusively.
    auto lock() noexcept {
        return detail::sync_awaitable<detail::shared_lock_awaiter<false>, detail::held_shared_lock>(
            lock_);
    }
    [[nodiscard]] bool try_lock() noexcept { return lock_.try_lock(); }
    /// Called by the exclusive owner. If the mutex is not locked exclusively, the program
    /// terminates with a message.
    void unlock() noexcept {
        if (!lock_.unlock()) [[unlikely]] {
            detail::end_with_misuse("unlock() of a shared_mutex that is not locked exclusively.");
        }
    }

    auto lock_shared() noexcept {
        return detail::sync_awaitable<detail::shared_lock_awaiter<true>, detail::held_shared_lock>(
            lock_);
    }
    /// Does not wait. Also returns false while other coroutines wait.
    [[nodiscard]] bool try_lock_shared() noexcept { return lock_.try_lock_shared(); }
    /// Called by a shared owner. If the mutex is not locked shared, the program terminates with a
    /// message.
    void unlock_shared() noexcept {
        if (!lock_.unlock_shared()) [[unlikely]] {
            detail::end_with_misuse("unlock_shared() of a shared_mutex that is not locked shared.");
        }
    }

    /// co_await returns a guard that unlocks the mutex when it is destroyed.
    auto lock_guard() noexcept {
        return detail::sync_awaitable<guard_awaiter<false>, shared_mutex>(*this);
    }
    auto shared_lock_guard() noexcept {
        return detail::sync_awaitable<guard_awaiter<true>, shared_mutex>(*this);
    }

private:
    template <bool Shared>
    class guard_awaiter;

    detail::held_shared_lock lock_;
};

/// Owns a shared_mutex, exclusively or shared, and unlocks it on destruction. Move-only.
template <bool Shared>
class [[nodiscard("the mutex is unlocked at once")]] shared_mutex::basic_guard {
public:
    basic_guard() noexcept = default;
    /// Adopts a mutex that the caller owns in this mode.
    explicit basic_guard(shared_mutex& held) noexcept : mutex_(&held) {}
    basic_guard(basic_guard&& other) noexcept
        : mutex_(coil::detail::exchange(other.mutex_, nullptr)) {}
    basic_guard& operator=(basic_guard&& other) noexcept {
        if (this != &other) {
            unlock();
            mutex_ = coil::detail::exchange(other.mutex_, nullptr);
        }
        return *this;
    }
    ~basic_guard() { unlock(); }

    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// Unlocks early. No effect if the guard owns no mutex.
    void unlock() noexcept {
        if (shared_mutex* const held = coil::detail::exchange(mutex_, nullptr)) {
            if (Shared) {
                held->unlock_shared();
            } else {
                held->unlock();
            }
        }
    }
    /// Gives up ownership without unlocking.
    shared_mutex* release() noexcept { return coil::detail::exchange(mutex_, nullptr); }

private:
    shared_mutex* mutex_ = nullptr;
};

template <bool Shared>
class shared_mutex::guard_awaiter : public detail::shared_lock_awaiter<Shared> {
public:
    explicit guard_awaiter(shared_mutex& source) noexcept
        : detail::shared_lock_awaiter<Shared>(source.lock_), source_(source) {}

    [[gnu::always_inline]] basic_guard<Shared> await_resume() {
        detail::shared_lock_awaiter<Shared>::await_resume();
        return basic_guard<Shared>(source_);
    }

private:
    shared_mutex& source_;
};

} // namespace coil
