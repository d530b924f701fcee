#pragma once

#include <coil/sync/detail/shared_lock.hpp>
#include <coil/sync/detail/waiter.hpp>

namespace coil::detail {

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
    static constexpr waited_object waits_for = waited_object::shared_mutex;
    static constexpr bool gives_back = true;

    [[nodiscard]] bool take_now() noexcept {
        return Shared ? lock_.try_lock_shared() : lock_.try_lock();
    }
    [[nodiscard]] shared_lock& queue() noexcept { return lock_; }
    void give_back() noexcept {
        if (Shared) {
            lock_.unlock_shared();
        } else {
            lock_.unlock();
        }
    }

    shared_lock& lock_;
};

} // namespace coil::detail
