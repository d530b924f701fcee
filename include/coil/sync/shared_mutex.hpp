#pragma once

#include <coil/sync/detail/shared_lock.hpp>
#include <coil/sync/detail/std_locks.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <utility>

namespace coil {

namespace detail {

struct shared_lock_entry : sync_waiter {
    explicit shared_lock_entry(bool wants_shared) noexcept : shared(wants_shared) {}
    const bool shared;
};
using shared_lock = basic_shared_lock<shared_lock_entry, sync_waiter>;

template <bool Shared>
class shared_lock_awaiter : public sync_awaiter<shared_lock_awaiter<Shared>, shared_lock_entry> {
public:
    explicit shared_lock_awaiter(shared_lock& source) noexcept
        : sync_awaiter<shared_lock_awaiter, shared_lock_entry>(Shared), lock_(source) {}
    ~shared_lock_awaiter() { this->end_wait(); }

    void await_resume() {
        if (!this->succeeded()) [[unlikely]] {
            throw_wait_cancelled("shared_mutex");
        }
    }

private:
    friend class sync_awaiter<shared_lock_awaiter<Shared>, shared_lock_entry>;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept {
        return Shared ? lock_.try_lock_shared() : lock_.try_lock();
    }
    [[nodiscard]] shared_lock& room() noexcept { return lock_; }
    void give_back() noexcept {
        if (Shared) {
            lock_.unlock_shared();
        } else {
            lock_.unlock();
        }
    }

    shared_lock& lock_;
};

} // namespace detail

/// std::shared_mutex for coroutines: one coroutine holds it alone, or any number share it.
///
/// First come, first served: nobody passes those who wait, so neither readers nor writers starve;
/// readers that wait one after the other get it together.
///
/// Threading: any context and any thread; it may be unlocked on another context than it was locked
/// on. Who waits goes on on its own context. It must outlive every call and every wait.
///
/// Cancellation: lock() and lock_shared() of a task that is asked to stop throw std::system_error
/// with std::errc::operation_canceled, and do not hold it. When it was handed to a coroutine that
/// is destroyed before it goes on, it passes to the next.
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

    /// co_await gives nothing, and the mutex.
    auto lock() noexcept {
        return detail::sync_awaitable<detail::shared_lock_awaiter<false>, detail::shared_lock>(
            lock_);
    }
    [[nodiscard]] bool try_lock() noexcept { return lock_.try_lock(); }
    /// Whoever holds it alone. When nobody does, the program ends with a message.
    void unlock() noexcept {
        if (!lock_.unlock()) [[unlikely]] {
            detail::end_with_misuse("unlock() of a shared_mutex that nobody holds alone.");
        }
    }

    auto lock_shared() noexcept {
        return detail::sync_awaitable<detail::shared_lock_awaiter<true>, detail::shared_lock>(
            lock_);
    }
    /// False also when somebody waits.
    [[nodiscard]] bool try_lock_shared() noexcept { return lock_.try_lock_shared(); }
    /// One of those who share it. When nobody does, the program ends with a message.
    void unlock_shared() noexcept {
        if (!lock_.unlock_shared()) [[unlikely]] {
            detail::end_with_misuse("unlock_shared() of a shared_mutex that nobody shares.");
        }
    }

    /// co_await gives a guard, which unlocks when it is destroyed.
    auto lock_guard() noexcept {
        return detail::sync_awaitable<guard_awaiter<false>, shared_mutex>(*this);
    }
    auto shared_lock_guard() noexcept {
        return detail::sync_awaitable<guard_awaiter<true>, shared_mutex>(*this);
    }

private:
    template <bool Shared>
    class guard_awaiter;

    detail::shared_lock lock_;
};

/// Holds a shared_mutex, alone or shared, for as long as it lives. Move-only.
template <bool Shared>
class [[nodiscard("the mutex is unlocked at once")]] shared_mutex::basic_guard {
public:
    basic_guard() noexcept = default;
    /// Of a mutex that the caller holds in this way.
    explicit basic_guard(shared_mutex& held) noexcept : mutex_(&held) {}
    basic_guard(basic_guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    basic_guard& operator=(basic_guard&& other) noexcept {
        if (this != &other) {
            unlock();
            mutex_ = std::exchange(other.mutex_, nullptr);
        }
        return *this;
    }
    ~basic_guard() { unlock(); }

    [[nodiscard]] bool owns_lock() const noexcept { return mutex_ != nullptr; }
    explicit operator bool() const noexcept { return owns_lock(); }

    /// Before its time; nothing when it holds none.
    void unlock() noexcept {
        if (shared_mutex* const held = std::exchange(mutex_, nullptr)) {
            if (Shared) {
                held->unlock_shared();
            } else {
                held->unlock();
            }
        }
    }
    /// The mutex, which stays locked.
    shared_mutex* release() noexcept { return std::exchange(mutex_, nullptr); }

private:
    shared_mutex* mutex_ = nullptr;
};

template <bool Shared>
class shared_mutex::guard_awaiter : public detail::shared_lock_awaiter<Shared> {
public:
    explicit guard_awaiter(shared_mutex& source) noexcept
        : detail::shared_lock_awaiter<Shared>(source.lock_), source_(source) {}

    basic_guard<Shared> await_resume() {
        detail::shared_lock_awaiter<Shared>::await_resume();
        return basic_guard<Shared>(source_);
    }

private:
    shared_mutex& source_;
};

} // namespace coil
