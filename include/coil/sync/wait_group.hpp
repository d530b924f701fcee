#pragma once

#include <coil/sync/detail/wait_room.hpp>
#include <coil/sync/detail/waiter.hpp>

#include <atomic>
#include <cstddef>
#include <limits>

namespace coil {

namespace detail {

/// The last done() is carried out in the turn: so who sees zero, and that the turn is free, knows
/// that nobody who counted down will touch the group again.
template <class Waiter, class Atomics = std_atomics>
class basic_group : public basic_wait_room<basic_group<Waiter, Atomics>, Waiter, Atomics> {
public:
    using room = basic_wait_room<basic_group<Waiter, Atomics>, Waiter, Atomics>;
    using typename room::told;

    constexpr explicit basic_group(std::ptrdiff_t count = 0) noexcept : count_(count) {}

    void add(std::ptrdiff_t n) noexcept { count_.fetch_add(n, std::memory_order_relaxed); }
    /// n > 0. False: there was less to be done.
    [[nodiscard]] bool done(std::ptrdiff_t n = 1) noexcept {
        std::ptrdiff_t seen = count_.load(std::memory_order_relaxed);
        while (seen > n || (seen == n && n > 1)) {
            const std::ptrdiff_t rest = seen > n ? seen - n : 1;
            if (count_.compare_exchange_weak(seen, rest, std::memory_order_release,
                                             std::memory_order_relaxed)) {
                if (seen > n) {
                    return true;
                }
                seen = n = 1; // the last one is left to the turn
            }
        }
        if (seen < n) {
            return false;
        }
        this->signal();
        return true;
    }
    [[nodiscard]] bool passes() const noexcept {
        return count_.load(std::memory_order_acquire) == 0 && this->turn_.is_free();
    }

private:
    friend room;

    void arrive(Waiter& w, told& t) noexcept {
        if (count_.load(std::memory_order_acquire) == 0) {
            t.over(w);
        } else {
            this->queue_.push(w);
        }
    }
    [[nodiscard]] bool may_leave(Waiter&) noexcept { return true; }
    void left(told&) noexcept {}
    void look(told& t) noexcept {
        if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            while (!this->queue_.empty()) {
                t.over(this->queue_.pop());
            }
        }
    }

    typename Atomics::template atomic<std::ptrdiff_t> count_;
};

} // namespace detail

/// Counts what is under way, and lets coroutines wait until nothing is: Go's WaitGroup.
///
///     coil::wait_group jobs;
///     for (auto& item : items) {
///         jobs.add();
///         co_spawn(work(item, jobs));     // ... jobs.done();
///     }
///     co_await jobs.wait();
///
/// It may be used again and again. add() while the count is zero belongs before the wait() that is
/// to wait for it: one that waits already may have been resumed.
///
/// Threading: any context and any thread. Who waits goes on on its own context; who has waited may
/// destroy the group, although the last done() has not returned yet on another thread.
///
/// Cancellation: wait() of a task that is asked to stop throws std::system_error with
/// std::errc::operation_canceled, unless the last done() came first.
class wait_group {
public:
    constexpr explicit wait_group(std::ptrdiff_t count = 0) noexcept : group_(count) {
        if (count < 0) [[unlikely]] {
            end_with_too_many();
        }
    }
    wait_group(const wait_group&) = delete;
    wait_group& operator=(const wait_group&) = delete;
    ~wait_group() = default;

    /// Below zero: as so many done(), at once.
    void add(std::ptrdiff_t n = 1) noexcept {
        if (n >= 0) [[likely]] {
            group_.add(n);
        } else if (n == std::numeric_limits<std::ptrdiff_t>::min() || !group_.done(-n)) {
            end_with_too_many();
        }
    }
    /// More often than add() said: the program ends with a message.
    void done() noexcept {
        if (!group_.done()) [[unlikely]] {
            end_with_too_many();
        }
    }

    auto wait() noexcept { return detail::sync_awaitable<awaiter, group>(group_); }

private:
    using group = detail::basic_group<detail::sync_waiter>;

    [[noreturn]] static void end_with_too_many() noexcept {
        detail::end_with_misuse("wait_group::done() was called more often than add() said.");
    }

    class awaiter : public detail::sync_awaiter<awaiter> {
    public:
        explicit awaiter(group& source) noexcept : group_(source) {}
        ~awaiter() { end_wait(); }

        void await_resume() {
            if (!succeeded()) [[unlikely]] {
                detail::throw_wait_cancelled("wait_group");
            }
        }

    private:
        friend class detail::sync_awaiter<awaiter>;
        static constexpr bool gives_back = false;

        [[nodiscard]] bool take_now() noexcept { return group_.passes(); }
        [[nodiscard]] group& room() noexcept { return group_; }
        void give_back() noexcept {}

        group& group_;
    };

    group group_;
};

} // namespace coil
