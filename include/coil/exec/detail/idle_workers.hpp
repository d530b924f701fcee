#pragma once

#include <coil/exec/detail/fences.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

namespace coil::detail {

/// Tracks which workers of a pool sleep and how many search, so that a producer wakes a worker only
/// if one sleeps and none searches, and no work waits while all sleep.
///
/// A producer publishes its work, executes a light fence, and calls wake_one() if must_wake() says
/// so. A worker without work calls find_or_sleep(): it announces that it sleeps, executes a heavy
/// fence, and searches everywhere once more before it sleeps.
///
/// Why no wake-up is lost: the work of a producer that finds no sleeping worker is seen by all
/// workers that announce later, because their heavy fence pairs with its light one. A producer that
/// finds a sleeping worker executes a full fence and reads the state again. Either it then sees
/// that no worker is searching, and wakes one; or the last searching worker, which checks for more
/// work when it ends its search, sees the producer's work.
template <class Atomics = pool_atomics>
class basic_idle_workers {
public:
    /// The state of one worker.
    class slot {
        friend basic_idle_workers;
        typename Atomics::template atomic<unsigned> woken_{0};
        // Protected by the lock.
        slot* below_ = nullptr;
        bool taken_ = false;
    };

    static constexpr unsigned most_workers = 0x7fff;

    explicit basic_idle_workers(unsigned workers) noexcept : workers_(workers) {}

    [[nodiscard]] unsigned workers() const noexcept { return workers_; }

    [[nodiscard]] bool stopped() const noexcept {
        return (state_.load(std::memory_order_relaxed) & stop_bit) != 0;
    }

    // The following may be called from any thread.

    /// Called after publishing work and a light fence. Returns whether wake_one() could have an
    /// effect; also true if the pool was stopped.
    [[nodiscard]] bool must_wake() const noexcept {
        return state_.load(std::memory_order_relaxed) >= one_asleep;
    }

    /// Wakes the worker that went to sleep last, unless another is searching already.
    void wake_one() noexcept {
        Atomics::fence();
        const unsigned seen = state_.load(std::memory_order_relaxed);
        if (searching(seen) != 0 || asleep(seen) == 0) {
            return;
        }
        slot* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (top_ == nullptr || searching(state_.load(std::memory_order_relaxed)) != 0) {
                return;
            }
            woken = top_;
            top_ = woken->below_;
            woken->taken_ = false;
            ++wakes_;
            state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
            woken->woken_.store(1, std::memory_order_release);
        }
        Atomics::wake(woken->woken_);
    }

    /// Stops: from now on no worker sleeps. The first call returns true.
    bool stop() noexcept {
        slot* woken = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if ((state_.fetch_or(stop_bit, std::memory_order_seq_cst) & stop_bit) != 0) {
                return false;
            }
            woken = top_;
            top_ = nullptr;
            for (slot* s = woken; s != nullptr; s = s->below_) {
                s->taken_ = false;
                state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
            }
        }
        while (woken != nullptr) {
            // a worker that was told to stop does not sleep again
            slot* const below = woken->below_;
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

    struct idle_state {
        unsigned asleep;
        std::uint64_t wakes; // how often a worker has stopped sleeping
    };
    /// nullopt unless all workers sleep or have left, and `nothing_waits()`.
    template <class Predicate>
    [[nodiscard]] std::optional<idle_state> when_idle(Predicate nothing_waits) noexcept {
        const std::lock_guard lock(mutex_);
        if (!all_idle() || !nothing_waits()) {
            return std::nullopt;
        }
        return idle_state{asleep(state_.load(std::memory_order_relaxed)), wakes_};
    }

    // The following are called by a worker.

    /// Called by a worker without work: returns what `find()` finds, possibly after sleeping, or
    /// null if the pool was stopped. `something_waits()` returns whether there is work; if there is
    /// none, it ensures that later work causes a wake-up (basic_injector::arm). `slept_in(f)` calls
    /// `f()`, which sleeps.
    template <class Find, class Waits, class Sleep>
    auto find_or_sleep(slot& s, Find find, Waits something_waits, Sleep slept_in) noexcept
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

    /// Called after a stop; the worker's last access.
    void leave() noexcept {
        const std::lock_guard lock(mutex_);
        ++left_;
        wake_waiters();
    }

private:
    static constexpr unsigned one_searching = 1;
    static constexpr unsigned one_asleep = 1U << 15U;
    static constexpr unsigned stop_bit = 1U << 31U;

    static unsigned searching(unsigned state) noexcept { return state & most_workers; }
    static unsigned asleep(unsigned state) noexcept { return state / one_asleep & most_workers; }

    /// Returns false if half of the workers are searching already.
    [[nodiscard]] bool begin_search() noexcept {
        if (2 * searching(state_.load(std::memory_order_relaxed)) >= workers_) {
            return false;
        }
        state_.fetch_add(one_searching, std::memory_order_seq_cst);
        return true;
    }

    /// Returns true if a worker sleeps and no other searches.
    [[nodiscard]] bool end_search() noexcept {
        const unsigned before = state_.fetch_sub(one_searching, std::memory_order_seq_cst);
        Atomics::fence();
        return searching(before) == 1 && asleep(before) != 0;
    }

    void announce(slot& s, bool searches) noexcept {
        s.woken_.store(0, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        if (stopped()) {
            s.woken_.store(1, std::memory_order_relaxed); // its sleep ends immediately
            return;
        }
        s.below_ = top_;
        s.taken_ = true;
        top_ = &s;
        state_.fetch_add(one_asleep - (searches ? one_searching : 0), std::memory_order_seq_cst);
        wake_waiters();
    }

    /// True: the worker does not sleep and is searching. False: another thread is waking it.
    [[nodiscard]] bool withdraw(slot& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (!s.taken_) {
            return false;
        }
        slot** link = &top_;
        while (*link != &s) {
            link = &(*link)->below_;
        }
        *link = s.below_;
        s.taken_ = false;
        ++wakes_;
        state_.fetch_add(one_searching - one_asleep, std::memory_order_seq_cst);
        return true;
    }

    /// Sleeps until woken: then it is searching, or the pool was stopped.
    static void sleep(slot& s) noexcept {
        while (s.woken_.load(std::memory_order_acquire) == 0) {
            Atomics::sleep_while(s.woken_, 0);
        }
    }

    [[nodiscard]] bool all_idle() const noexcept {
        return asleep(state_.load(std::memory_order_relaxed)) + left_ == workers_;
    }

    /// Called with the lock held.
    void wake_waiters() noexcept {
        if (waiting_ != 0 && all_idle()) {
            rounds_.fetch_add(1, std::memory_order_release);
            Atomics::wake_all(rounds_);
        }
    }

    // Read for every piece of work that a worker submits; written when a worker sleeps, wakes up,
    // or finds something.
    alignas(64) typename Atomics::template atomic<unsigned> state_{0};
    const unsigned workers_;
    // The workers that sleep or are about to. Their number changes only with the lock
    // held.
    alignas(64) typename Atomics::mutex mutex_;
    slot* top_ = nullptr;
    unsigned left_ = 0;
    unsigned waiting_ = 0;
    std::uint64_t wakes_ = 0;
    typename Atomics::template atomic<unsigned> rounds_{0};
};

} // namespace coil::detail
