#pragma once

namespace coil::sim {

/// What goes wrong in a world, and how often: each rate is a number of times in a thousand. Every
/// fault is one that Linux may show to a correct program. All rates are 0 by default: a world
/// without a plan has latencies and an order of its own for each seed, and no faults.
struct fault_plan {
    // What a correct program survives without noticing: the runtime hides it.
    unsigned delay_completion = 0; ///< a completion comes later than its call ended
    unsigned delay_turn = 0; ///< a context that could go on is left waiting (a delayed wake-up)
    unsigned late_after_cancel = 0; ///< a request to cancel comes too late: the call ends by itself
    unsigned delay_link =
        0; ///< a linked call starts late; until then no request to cancel finds it
    unsigned end_multishot = 0;   ///< a multishot request ends after a completion, without F_MORE
    unsigned queue_full = 0;      ///< the ring takes only some of the entries that are submitted
    unsigned small_queues = 0;    ///< a context is made with queues of 2: they fill and overflow
    unsigned interrupt_enter = 0; ///< io_uring_enter gives EINTR

    // What a program notices and must handle.
    unsigned short_transfer = 0; ///< a read, write, send or receive moves less than it could
    /// A call that may wait is interrupted and has done nothing. The kernel's EINTR comes out of
    /// coil's operations as -ECANCELED, though nobody has asked to stop; accept's as it is.
    unsigned interrupt = 0;
    unsigned cancel = 0;          ///< a call gives ECANCELED, as at the end of its thread
    unsigned no_buffers = 0;      ///< a send or connect gives ENOBUFS
    unsigned no_descriptors = 0;  ///< accept, socket, open, pipe give EMFILE
    unsigned no_space = 0;        ///< a write to a file gives ENOSPC
    unsigned io_error = 0;        ///< a call on a file gives EIO
    unsigned lost_connection = 0; ///< a connection is reset when data is sent on it

    unsigned longest_delay_us = 1000; ///< of a delayed completion or turn

    /// The first group, often.
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
    /// All of them.
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
