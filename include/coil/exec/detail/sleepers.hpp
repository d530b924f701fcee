#pragma once

#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <mutex>

namespace coil::detail {

/// Which of a pool's workers sleep, and how many look for work: so that who brings work wakes one
/// only when somebody sleeps and nobody looks, and that no work waits while all sleep.
///
/// Who brings work leaves it, makes a light fence, and calls wake_one() if must_wake() says so. Who
/// has nothing of its own to do calls look(): it announces that it sleeps, makes a heavy fence, and
/// looks everywhere once more before it does.
///
/// Why nothing is lost: who brings work and finds nobody asleep is seen by all who announce later,
/// since their heavy fence meets its light one. Who finds somebody asleep and somebody looking
/// makes a full fence of its own and asks again; then either it sees that they have stopped
/// looking, or the last of them, which looks once more when it has found something, sees the work.
template <class Atomics = pool_atomics>
class basic_sleepers {
public:
    /// A worker's.
    class seat {
        friend basic_sleepers;
        typename Atomics::template atomic<unsigned> woken_{0};
        // Under the lock.
        seat* below_ = nullptr;
        bool taken_ = false;
    };

    static constexpr unsigned most_workers = 0x7fff;

    explicit basic_sleepers(unsigned workers) noexcept : workers_(workers) {}

    [[nodiscard]] unsigned workers() const noexcept { return workers_; }

    [[nodiscard]] bool stopped() const noexcept {
        return (state_.load(std::memory_order_relaxed) & stop_bit) != 0;
    }

    // Any thread.

    /// After leaving work and a light fence: whether wake_one() could do anything. Also true when
    /// the pool was stopped.
    [[nodiscard]] bool must_wake() const noexcept {
        return state_.load(std::memory_order_relaxed) >= one_asleep;
    }

    /// Wakes the worker that went to sleep last, unless somebody looks for work already.
    void wake_one() noexcept {
        Atomics::fence();
        const unsigned seen = state_.load(std::memory_order_relaxed);
        if (searching(seen) != 0 || asleep(seen) == 0) {
            return;
        }
        seat* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (top_ == nullptr || searching(state_.load(std::memory_order_relaxed)) != 0) {
                return;
            }
            woken = top_;
            top_ = woken->below_;
            woken->taken_ = false;
            state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
            woken->woken_.store(1, std::memory_order_release);
        }
        Atomics::wake(woken->woken_);
    }

    /// Nobody sleeps from now on. True the first time.
    bool stop() noexcept {
        seat* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if ((state_.fetch_or(stop_bit, std::memory_order_seq_cst) & stop_bit) != 0) {
                return false;
            }
            woken = top_;
            top_ = nullptr;
            for (seat* s = woken; s != nullptr; s = s->below_) {
                s->taken_ = false;
                state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
            }
        }
        while (woken != nullptr) {
            seat* const below = woken->below_; // a worker that was told does not sit down again
            woken->woken_.store(1, std::memory_order_release);
            Atomics::wake(woken->woken_);
            woken = below;
        }
        return true;
    }

    /// Blocks until all workers sleep and `nothing_waits()`, or all have left after a stop.
    template <class Predicate>
    void wait_until_idle(Predicate nothing_waits) noexcept {
        mutex_.lock();
        while (!all_idle() || !(nothing_waits() || stopped())) {
            ++waiting_;
            const unsigned round = rounds_.load(std::memory_order_relaxed);
            mutex_.unlock();
            Atomics::sleep_while(rounds_, round);
            mutex_.lock();
            --waiting_;
        }
        mutex_.unlock();
    }

    // A worker.

    /// With nothing of its own left to do: what `find()` finds, which it may sleep for; null when
    /// the pool was stopped. `something_waits()`: whether there is anything to be found, after
    /// which it is told when there is (basic_injector::arm). `slept_in(f)` calls `f()`, which
    /// sleeps.
    template <class Find, class Waits, class Sleep>
    auto look(seat& s, Find find, Waits something_waits, Sleep slept_in) noexcept
        -> decltype(find()) {
        bool searches = begin_search();
        for (;;) {
            if (searches) {
                if (auto* const found = find()) {
                    if (end_search() && something_waits()) {
                        wake_one();
                    }
                    return found;
                }
            }
            if (stopped()) {
                return nullptr;
            }
            announce(s, searches);
            Atomics::heavy_fence();
            if (!something_waits() || !withdraw(s)) {
                slept_in([&s] { sleep(s); });
            }
            searches = true;
        }
    }

    /// For good, after a stop; its last access.
    void leave() noexcept {
        const std::lock_guard lock(mutex_);
        ++left_;
        tell_who_waits();
    }

private:
    static constexpr unsigned one_searching = 1;
    static constexpr unsigned one_asleep = 1U << 15U;
    static constexpr unsigned stop_bit = 1U << 31U;

    static unsigned searching(unsigned state) noexcept { return state & most_workers; }
    static unsigned asleep(unsigned state) noexcept { return state / one_asleep & most_workers; }

    /// False: half of the workers look already.
    [[nodiscard]] bool begin_search() noexcept {
        if (2 * searching(state_.load(std::memory_order_relaxed)) >= workers_) {
            return false;
        }
        state_.fetch_add(one_searching, std::memory_order_seq_cst);
        return true;
    }

    /// True: somebody sleeps and nobody else looks.
    [[nodiscard]] bool end_search() noexcept {
        const unsigned before = state_.fetch_sub(one_searching, std::memory_order_seq_cst);
        Atomics::fence();
        return searching(before) == 1 && asleep(before) != 0;
    }

    void announce(seat& s, bool searches) noexcept {
        s.woken_.store(0, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        if (stopped()) {
            s.woken_.store(1, std::memory_order_relaxed); // it sleeps, and finds itself woken
            return;
        }
        s.below_ = top_;
        s.taken_ = true;
        top_ = &s;
        state_.fetch_add(one_asleep - (searches ? one_searching : 0), std::memory_order_seq_cst);
        tell_who_waits();
    }

    /// True: it does not sleep, and is searching. False: somebody wakes it.
    [[nodiscard]] bool withdraw(seat& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (!s.taken_) {
            return false;
        }
        seat** link = &top_;
        while (*link != &s) {
            link = &(*link)->below_;
        }
        *link = s.below_;
        s.taken_ = false;
        state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
        return true;
    }

    /// Until it is woken: then it is searching, or the pool was stopped.
    static void sleep(seat& s) noexcept {
        while (s.woken_.load(std::memory_order_acquire) == 0) {
            Atomics::sleep_while(s.woken_, 0);
        }
    }

    [[nodiscard]] bool all_idle() const noexcept {
        return asleep(state_.load(std::memory_order_relaxed)) + left_ == workers_;
    }

    /// By whoever holds the lock.
    void tell_who_waits() noexcept {
        if (waiting_ != 0 && all_idle()) {
            rounds_.fetch_add(1, std::memory_order_release);
            Atomics::wake_all(rounds_);
        }
    }

    // Read with every piece of work that a worker brings; written when somebody sleeps, wakes up,
    // or finds something.
    alignas(64) typename Atomics::template atomic<unsigned> state_{0};
    const unsigned workers_;
    // Who sleeps, or is about to. The numbers of those asleep change under the lock only.
    alignas(64) typename Atomics::mutex mutex_;
    seat* top_ = nullptr;
    unsigned left_ = 0;
    unsigned waiting_ = 0;
    typename Atomics::template atomic<unsigned> rounds_{0};
};

} // namespace coil::detail
