#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

namespace coil::detail {

/// How the contexts of a runtime learn together that nothing is left to do.
///
/// A context that sleeps without any work is absent. Whoever wakes it counts it in again before
/// the wake-up, so while any task runs that could give work to others, somebody is present. When
/// the last one leaves it is over for all of them, until the next begin(): a context that is woken
/// after that ends without a look at its inbox. What came too late waits there for the next round,
/// in which every context takes part; otherwise it would run while those it needs are gone.
class quiescence {
public:
    struct seat {
        bool absent = false;
        bool finished = false;
    };

    /// `wake_all` is called once a round, on the thread of the context that left last.
    explicit quiescence(std::function<void()> wake_all) : wake_all_(std::move(wake_all)) {}

    /// Nobody is in yet; every seat is present, and so many more that nobody leaves.
    void begin(unsigned seats, unsigned kept) {
        const std::lock_guard lock(mutex_);
        present_ = seats + kept;
        unfinished_ = seats;
        over_.store(false, std::memory_order_relaxed);
    }

    /// Before its context takes part in the round.
    void take(seat& s) noexcept {
        const std::lock_guard lock(mutex_);
        s.absent = false;
        s.finished = false;
    }

    /// The seat's context is about to sleep and has no work. `still_asleep` says whether nobody has
    /// woken it since it announced that.
    template <class Predicate>
    void leave(seat& s, Predicate still_asleep) {
        {
            const std::lock_guard lock(mutex_);
            if (!still_asleep()) {
                return;
            }
            s.absent = true;
            if (--present_ > 0) {
                return;
            }
            over_.store(true, std::memory_order_release);
        }
        wake_all_();
    }

    /// Any thread that wakes the seat's context, and that context itself.
    void come_back(seat& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (s.absent && !over_.load(std::memory_order_relaxed)) {
            s.absent = false;
            ++present_;
        }
    }

    // How they end together when they are stopped.

    /// The seat's context has ended, or has destroyed all that it had and waits for the others.
    /// Once a round counts.
    void finish(seat& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(s.finished, true)) {
            --unfinished_;
        }
    }
    [[nodiscard]] bool all_finished() noexcept {
        const std::lock_guard lock(mutex_);
        return unfinished_ == 0;
    }

    [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

private:
    std::mutex mutex_;
    unsigned present_ = 0;
    unsigned unfinished_ = 0;
    std::atomic<bool> over_{true};
    const std::function<void()> wake_all_;
};

} // namespace coil::detail
