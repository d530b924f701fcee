#pragma once

#include <coil/sync/detail/permit_awaiter.hpp>
#include <coil/sync/detail/std_locks.hpp>

#include <atomic>
#include <utility>

namespace coil {

namespace detail {

struct lock_kind {
    static constexpr const char* name = "mutex";
    static void give_back(permits& p) noexcept { p.release(); }
};

} // namespace detail

/// std::mutex for coroutines: who waits is suspended, and the thread goes on with others. A
/// coroutine that holds it may await whatever it likes meanwhile, and may unlock on another context
/// than it locked on.
///
///     coil::mutex m;
///     {
///         auto guard = co_await m.lock_guard();
///         co_await append(log, entry);
///     }
///
/// unlock() hands the mutex to one of those who wait; who comes meanwhile queues behind them. Among
/// waiters of one context: first come, first served. With several contexts it stays with one for a
/// while, which is many times cheaper: of the eight that have waited longest, the first of the
/// context that unlocks has it next; but whoever has waited longest of all is passed at most 32
/// times. Not recursive.
///
/// Threading: any context and any thread. Who waits goes on on its own context. It may be destroyed
/// as soon as nobody holds it or waits for it, also by whoever unlocked it last.
///
/// Cancellation: lock() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, and does not hold the mutex. A mutex that was handed to a
/// coroutine that is destroyed before it goes on passes to the next.
class mutex {
public:
    class guard;

    constexpr mutex() noexcept = default;
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    ~mutex() = default;

    /// co_await gives nothing, and the mutex.
    auto lock() noexcept {
        return detail::sync_awaitable<detail::permit_awaiter<detail::lock_kind>, detail::permits>(
            permits_);
    }
    /// Does not wait. True: the caller holds the mutex.
    [[nodiscard]] bool try_lock() noexcept { return permits_.try_acquire(); }
    /// Whoever holds it; from any thread. When nobody does, the program ends with a message.
    void unlock() noexcept {
        if (permits_.release() > 0) [[unlikely]] {
            detail::end_with_misuse("unlock() of a mutex that nobody holds.");
        }
    }

    /// co_await gives a guard, which unlocks when it is destroyed.
    auto lock_guard() noexcept { return detail::sync_awaitable<guard_awaiter, mutex>(*this); }

private:
    class guard_awaiter;
    friend class condition_variable;

    /// A guard that takes an orphan's place leaves the mutex to one that comes later and finds
    /// none: that one unlocks what the first has held, and everything the first did happens before.
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

    detail::permits permits_{1};
    /// How many guards will unlock what they do not hold: those of coroutines that were destroyed
    /// while they waited for a condition. Any guard may answer for them, as the number of calls
    /// comes out right.
    std::atomic<unsigned> orphans_{0};
    bool guarded_ = false; // the holder's: it has a guard
};

/// Holds a mutex for as long as it lives. Move-only.
class [[nodiscard("the mutex is unlocked at once")]] mutex::guard {
public:
    guard() noexcept = default;
    /// Of a mutex that the caller holds.
    explicit guard(mutex& held) noexcept : mutex_(&held) { held.guarded_ = true; }
    guard(guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    guard& operator=(guard&& other) noexcept {
        if (this != &other) {
            unlock();
            mutex_ = std::exchange(other.mutex_, nullptr);
        }
        return *this;
    }
    ~guard() { unlock(); }

    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// Before its time; nothing when it holds none.
    void unlock() noexcept {
        if (mutex* const held = std::exchange(mutex_, nullptr)) {
            held->unlock_by_guard();
        }
    }
    /// The mutex, which stays locked.
    mutex* release() noexcept {
        if (mutex_ != nullptr) {
            mutex_->guarded_ = false;
        }
        return std::exchange(mutex_, nullptr);
    }

private:
    mutex* mutex_ = nullptr;
};

class mutex::guard_awaiter : public detail::permit_awaiter<detail::lock_kind> {
public:
    explicit guard_awaiter(mutex& source) noexcept
        : permit_awaiter(source.permits_), source_(source) {}

    guard await_resume() {
        permit_awaiter::await_resume();
        return guard(source_);
    }

private:
    mutex& source_;
};

} // namespace coil
