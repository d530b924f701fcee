#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/inbox.hpp>
#include <coil/context/detail/quiescence.hpp>

namespace coil {
class runtime;
} // namespace coil

namespace coil::detail {

/// A loop's part in a round of its runtime: the contexts of a runtime start a round together, and
/// end it together when none of them has work left (quiescence). A loop that belongs to no runtime
/// is in no round. All functions but become_active() are called by the owner thread.
class round_member {
public:
    /// Called before any other thread knows the loop.
    void set_runtime(runtime& owner, quiescence& common_end) noexcept {
        runtime_ = &owner;
        quiescence_ = &common_end;
    }
    /// The runtime that the loop is part of, or null.
    [[nodiscard]] runtime* owner() const noexcept { return runtime_; }

    /// Called before run(), which then takes part in the round.
    void join_round() noexcept {
        quiescence_->join(self_);
        taking_part_ = true;
    }
    [[nodiscard]] bool takes_part() const noexcept { return taking_part_; }
    /// Leaves the round for good. Returns false if the loop was not in a round.
    bool leave_round() noexcept {
        if (!coil::detail::exchange(taking_part_, false)) {
            return false;
        }
        quiescence_->finish(self_);
        return true;
    }

    /// Called before the loop sleeps without work. `posts` is already marked as parked.
    void become_idle(inbox& posts) {
        quiescence_->become_idle(self_, [&posts] { return posts.is_parked(); });
    }
    /// Called by the thread that ends the sleep, and by the loop itself.
    void become_active() noexcept {
        if (quiescence_ != nullptr) {
            quiescence_->become_active(self_);
        }
    }
    /// Whether nothing is left to do in any context of the round.
    [[nodiscard]] bool is_over() const noexcept { return taking_part_ && quiescence_->is_over(); }

    [[nodiscard]] bool claim_deadlock_report() noexcept {
        return quiescence_->claim_deadlock_report();
    }

    // A shutdown of the round.

    void finish() noexcept { quiescence_->finish(self_); }
    [[nodiscard]] bool all_finished() noexcept { return quiescence_->all_finished(); }

private:
    runtime* runtime_ = nullptr;
    quiescence* quiescence_ = nullptr;
    quiescence::participant self_;
    bool taking_part_ = false;
};

} // namespace coil::detail
