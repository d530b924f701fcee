#pragma once

#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/loop_signals.hpp>

#include <cstdint>

namespace coil::detail {

/// The eventfd with which other threads end a loop's sleep, and the loop's own read of it.
///
/// A thread that ends a sleep (basic_inbox::push(), unpark_for_signal()) owes one signal(). The
/// loop counts the signals it is owed, because the descriptor may be closed only after the last of
/// them: see await_signals().
class wake_descriptor {
public:
    /// Throws std::system_error.
    wake_descriptor();
    ~wake_descriptor();
    wake_descriptor(const wake_descriptor&) = delete;
    wake_descriptor& operator=(const wake_descriptor&) = delete;

    /// Any thread.
    void signal() const noexcept;

    // Owner thread.

    /// Submits the read unless it is in flight or the queue is full.
    void watch(loop_ring& ring) noexcept {
        if (!watched_) {
            submit_read(ring);
        }
    }
    /// Whether the read is in flight: without it no signal ends a sleep.
    [[nodiscard]] bool is_watched() const noexcept { return watched_; }
    /// Called when the read has completed.
    void on_read(std::int32_t result) noexcept {
        watched_ = false;
        account_.saw(result > 0 ? count_ : 0);
    }
    /// Called when another thread owes a signal.
    void expect_signal() noexcept { account_.expect(); }
    /// While the read is not in flight: blocks until every expected signal has been sent, after
    /// which no other thread touches the descriptor.
    void await_signals() noexcept;

private:
    void submit_read(loop_ring& ring) noexcept;

    int fd_;
    bool watched_ = false;
    std::uint64_t count_ = 0; // the read's buffer
    wake_account account_;
};

} // namespace coil::detail
