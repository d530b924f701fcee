#pragma once

#include <coil/base/exchange.hpp>
#include <coil/sync/mutex.hpp>

#include <memory>

namespace coil::tls::detail {

/// A mutex that allocates memory only when two coroutines contend for it: most connections are used
/// by one coroutine. Used on one context at a time.
class transfer_lock {
public:
    [[nodiscard]] bool try_lock() noexcept {
        return contended_ ? contended_->try_lock() : !coil::detail::exchange(locked_, true);
    }
    void unlock() noexcept {
        if (contended_) {
            contended_->unlock();
        } else {
            locked_ = false;
        }
    }
    /// The mutex to lock if try_lock() has failed. Throws std::bad_alloc.
    [[nodiscard]] mutex& contended() {
        if (!contended_) {
            contended_ = std::make_unique<mutex>();
            (void)contended_->try_lock(); // for the coroutine that holds this lock
        }
        return *contended_;
    }

    class guard {
    public:
        /// The lock must be held.
        explicit guard(transfer_lock& of) noexcept : of_(&of) {}
        guard(const guard&) = delete;
        guard& operator=(const guard&) = delete;
        ~guard() {
            if (of_ != nullptr) {
                of_->unlock();
            }
        }
        /// Leaves the lock locked, for the caller of the function that has locked it.
        void keep_locked() noexcept { of_ = nullptr; }

    private:
        transfer_lock* of_;
    };

private:
    std::unique_ptr<mutex> contended_; // replaces locked_
    bool locked_ = false;
};

} // namespace coil::tls::detail
