#pragma once

#include <coil/sync/detail/shared_lock.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <coroutine>

namespace coil::detail {

struct shared_lock_entry : sync_waiter {
    explicit shared_lock_entry(bool wants_shared) noexcept : shared(wants_shared) {}
    const bool shared;
};
using shared_lock = basic_shared_lock<shared_lock_entry, sync_waiter>;

/// A shared_lock and, for reports, the task that has locked it.
class held_shared_lock {
public:
    [[nodiscard]] bool try_lock() noexcept {
        if (!lock_.try_lock()) {
            return false;
        }
        holder_.note(nullptr);
        return true;
    }
    [[nodiscard]] bool try_lock_shared() noexcept {
        if (!lock_.try_lock_shared()) {
            return false;
        }
        holder_.note_shared();
        return true;
    }
    bool unlock() noexcept {
        holder_.note(nullptr);
        return lock_.unlock();
    }
    bool unlock_shared() noexcept { return lock_.unlock_shared(); }

    [[nodiscard]] lock_holder& holder() noexcept { return holder_; }
    [[nodiscard]] shared_lock& queue() noexcept { return lock_; }

private:
    lock_holder holder_; // the first member
    shared_lock lock_;
};

template <bool Shared>
class shared_lock_awaiter : public sync_awaiter<shared_lock_awaiter<Shared>, shared_lock_entry> {
public:
    explicit shared_lock_awaiter(held_shared_lock& source) noexcept // NOLINT(*-member-init)
        : sync_awaiter<shared_lock_awaiter, shared_lock_entry>(Shared), lock_(source) {}
    ~shared_lock_awaiter() { this->end_wait(); }

    template <class P>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<P> coroutine) noexcept {
        if constexpr (!Shared) {
            root_ = nearest_root(coroutine);
        }
        return sync_awaiter<shared_lock_awaiter, shared_lock_entry>::await_suspend(coroutine);
    }
    [[gnu::always_inline]] void await_resume() {
        this->throw_if_cancelled("shared_mutex");
        if constexpr (Shared) {
            lock_.holder().note_shared();
        } else {
            lock_.holder().note(root_);
        }
    }

private:
    friend class sync_awaiter<shared_lock_awaiter<Shared>, shared_lock_entry>;
    static constexpr waited_object waits_for = waited_object::shared_mutex;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept {
        return Shared ? queue().try_lock_shared() : queue().try_lock();
    }
    [[nodiscard]] shared_lock& queue() noexcept { return lock_.queue(); }
    void give_back() noexcept {
        if (Shared) {
            lock_.unlock_shared();
        } else {
            lock_.unlock();
        }
    }

    held_shared_lock& lock_;   // the first member
    const promise_base* root_; // of an exclusive lock, valid from await_suspend() on
};

} // namespace coil::detail
