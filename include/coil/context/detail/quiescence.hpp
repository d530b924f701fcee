#pragma once

#include <coil/base/exchange.hpp>
#include <coil/base/std_function.hpp>

#include <atomic>
#include <mutex>
#include <utility>

namespace coil::detail {

/// Detects that no context of a runtime has work left.
///
/// A context that sleeps without work is absent. A thread that wakes it marks it present before the
/// wake-up, so while a task runs that could give work to others, at least one context is present.
/// When the last one becomes absent the round is over for all of them until the next begin(): a
/// context that is woken after that ends without processing its inbox. Messages that arrived too
/// late stay there until the next round, in which every context participates; otherwise they would
/// be processed without the contexts that they need.
class quiescence {
public:
    struct participant {
        bool absent = false;
        bool finished = false;
    };

    /// `wake_all` is called once per round, on the thread of the last context to become absent.
    explicit quiescence(std::function<void()> wake_all) : wake_all_(std::move(wake_all)) {}

    /// Called before any context joins. Counts all participants as present, and `kept` more: if
    /// that is not 0, the round cannot end.
    void begin(unsigned participants, unsigned kept) {
        const std::lock_guard lock(mutex_);
        present_ = participants + kept;
        unfinished_ = participants;
        over_.store(false, std::memory_order_relaxed);
    }

    /// Called before the participant's context takes part in the round.
    void join(participant& s) noexcept {
        const std::lock_guard lock(mutex_);
        s.absent = false;
        s.finished = false;
    }

    /// The participant's context is about to sleep and has no work. `still_asleep` returns whether
    /// no thread has woken it since it announced that.
    template <class Predicate>
    void become_idle(participant& s, Predicate still_asleep) {
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

    /// Called by any thread that wakes the participant's context, and by that context itself.
    void become_active(participant& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (s.absent && !over_.load(std::memory_order_relaxed)) {
            s.absent = false;
            ++present_;
        }
    }

    // Ending together after a stop.

    /// The participant's context has ended, or has destroyed all its tasks and waits for the
    /// others. Counts once per round.
    void finish(participant& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (!coil::detail::exchange(s.finished, true)) {
            --unfinished_;
        }
    }
    [[nodiscard]] bool all_finished() noexcept {
        const std::lock_guard lock(mutex_);
        return unfinished_ == 0;
    }

    /// Returns true once: for the context that reports that all of them wait for ever.
    [[nodiscard]] bool claim_deadlock_report() noexcept {
        return !deadlock_reported_.exchange(true, std::memory_order_relaxed);
    }

    [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

private:
    std::mutex mutex_;
    unsigned present_ = 0;
    unsigned unfinished_ = 0;
    std::atomic<bool> over_{true};
    std::atomic<bool> deadlock_reported_{false};
    const std::function<void()> wake_all_;
};

} // namespace coil::detail
