#pragma once

#include <coil/sync/detail/wait_room.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace coil::detail {

/// A number of permits, and those who wait for one: what semaphores, mutexes and auto-reset events
/// are.
///
/// `count_` is how many are free; below zero, how many who have asked are not promised one yet. Who
/// gives one back while somebody waits has promised it to them: it is never free in between, so
/// nobody who does not wait passes them. What has been promised and not been given is, in the
/// turn, in `due_`.
///
/// A signal is one permit. So leaving it is the last access of whoever gives one back: the permit
/// is not given before, and who has learned that all were given may destroy this.
///
/// Giving one to another context costs many times what it costs to give it to one's own. So the
/// oldest waiter of the context that gives comes first, if it is near the front; but the oldest of
/// all is not passed more than `most_passed` times.
///
/// Waiter: also `is_here()`, whether its context runs on this thread.
template <class Waiter, class Atomics = std_atomics>
class basic_permits : public basic_wait_room<basic_permits<Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_permits<Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

    constexpr explicit basic_permits(std::ptrdiff_t free) noexcept : count_(free) {}

    [[nodiscard]] bool try_acquire() noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen > 0) {
            if (count_.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    /// False: the caller waits for one, by wait(), now.
    [[nodiscard]] bool acquire() noexcept {
        return count_.fetch_sub(1, std::memory_order_acquire) > 0;
    }
    /// Gives how many were free before.
    std::ptrdiff_t release(std::ptrdiff_t n = 1) noexcept {
        const std::ptrdiff_t before = count_.fetch_add(n, std::memory_order_release);
        if (before < 0) {
            promise(std::min(n, -before));
        }
        return before;
    }
    /// Gives one back, unless `most` are free.
    void release_up_to(std::ptrdiff_t most) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        do {
            if (seen >= most) {
                return;
            }
        } while (!count_.compare_exchange_weak(seen, seen + 1, std::memory_order_release,
                                               std::memory_order_relaxed));
        if (seen < 0) {
            promise(1);
        }
    }
    [[nodiscard]] std::ptrdiff_t free() const noexcept {
        return count_.load(std::memory_order_acquire);
    }

private:
    friend room;

    void promise(std::ptrdiff_t n) noexcept {
        if (n == 1) {
            this->signal_alone();
        } else {
            this->in_turn([this, n](told& t) { give(n, t); });
        }
    }

    void arrive(Waiter& w, told& t) noexcept {
        if (due_ > 0) { // those before it have left
            due_ = due_ - 1;
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    /// Not when all who wait are promised one.
    [[nodiscard]] bool may_leave(Waiter&) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen < 0) {
            if (count_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed,
                                             std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    void left(told&) noexcept {}
    void look(told& t) noexcept { give(1, t); }
    void give(std::ptrdiff_t n, told& t) noexcept {
        due_ = due_ + n;
        while (due_ > 0 && !this->queue_.empty()) {
            due_ = due_ - 1;
            Waiter& w = next();
            this->queue_.remove(w);
            t.over(w);
        }
    }
    /// Who is to have the next one; somebody waits.
    [[nodiscard]] Waiter& next() noexcept {
        constexpr int most_passed = 32;
        constexpr int reach = 8;
        Waiter* const oldest = this->queue_.first();
        if (passed_ < most_passed) {
            Waiter* w = oldest;
            for (int i = 0; w != nullptr && i < reach; ++i, w = w->later) {
                if (w->is_here()) {
                    passed_ = w == oldest ? 0 : passed_ + 1;
                    return *w;
                }
            }
        }
        passed_ = 0;
        return *oldest;
    }

    typename Atomics::template atomic<std::ptrdiff_t> count_;
    // The turn's.
    std::ptrdiff_t due_ = 0;
    int passed_ = 0; // how often the oldest was
};

} // namespace coil::detail
