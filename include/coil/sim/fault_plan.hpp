#pragma once

namespace coil::sim {

/// The faults that a world injects, and how often: each rate is per thousand. Every fault is one
/// that Linux may show to a correct program. All rates are 0 by default: a world without a plan
/// varies only latencies and order with the seed.
///
///     sim::world_options options;
///     options.faults = sim::fault_plan::timing();
///     options.faults.short_transfer = 100;        // one transfer in ten
struct fault_plan {
    // Faults that a correct program does not notice, because the runtime handles them.
    unsigned delay_completion = 0;  ///< a completion is posted later than its call ended
    unsigned delay_turn = 0;        ///< a runnable context is delayed (a delayed wake-up)
    unsigned late_after_cancel = 0; ///< a cancellation is too late: the call completes normally
    unsigned delay_link =
        0; ///< a linked call starts late; until then cancellation does not find it
    unsigned end_multishot = 0;   ///< a multishot request ends after a completion, without F_MORE
    unsigned queue_full = 0;      ///< the ring consumes only some of the submitted entries
    unsigned small_queues = 0;    ///< a context gets queues of 2 entries, which fill and overflow
    unsigned interrupt_enter = 0; ///< io_uring_enter returns EINTR

    // Faults that a program sees and must handle.
    unsigned short_transfer = 0; ///< a read, write, send or receive transfers less than possible
    /// A call that may wait is interrupted without effect. coil's operations report the kernel's
    /// EINTR as -ECANCELED, although no stop was requested, except accept, which returns -EINTR.
    unsigned interrupt = 0;
    unsigned cancel = 0;          ///< a call fails with ECANCELED, as when its thread exits
    unsigned no_buffers = 0;      ///< a send or connect fails with ENOBUFS
    unsigned no_descriptors = 0;  ///< accept, socket, open, pipe fail with EMFILE
    unsigned no_space = 0;        ///< a write to a file fails with ENOSPC
    unsigned io_error = 0;        ///< a call on a file fails with EIO
    unsigned lost_connection = 0; ///< a connection is reset when data is sent on it

    unsigned longest_delay_us = 1000; ///< the maximum for a delayed completion or turn

    /// The faults of the first group, at high rates.
    static constexpr fault_plan timing() noexcept {
        fault_plan plan;
        plan.delay_completion = 150;
        plan.delay_turn = 50;
        plan.late_after_cancel = 300;
        plan.delay_link = 200;
        plan.end_multishot = 200;
        plan.queue_full = 50;
        plan.small_queues = 200;
        plan.interrupt_enter = 30;
        return plan;
    }
    /// All faults.
    static constexpr fault_plan everything() noexcept {
        fault_plan plan = timing();
        plan.short_transfer = 200;
        plan.interrupt = 20;
        plan.cancel = 5;
        plan.no_buffers = 10;
        plan.no_descriptors = 10;
        plan.no_space = 5;
        plan.io_error = 5;
        plan.lost_connection = 2;
        return plan;
    }
};

} // namespace coil::sim
