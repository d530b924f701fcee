#pragma once

// For tests of single parts of an event loop: a ring without the loop.

#include "support/run.hpp"

#include <coil/context/detail/inbox.hpp>
#include <coil/context/detail/live_metrics.hpp>
#include <coil/context/detail/loop_ring.hpp>
#include <coil/context/detail/sqe_slot.hpp>
#include <coil/context/detail/turn_meter.hpp>
#include <coil/uring/epoll_backend.hpp>
#include <coil/uring/prep.hpp>

#include <cstdint>

namespace loop_parts {

using namespace coil;
using namespace coil::detail;

/// A small ring that is bound to this thread.
struct ring_alone {
    explicit ring_alone(unsigned entries = 8) {
        options.entries = entries;
        ring.emplace(options, metrics);
        ring->bind_to_this_thread();
    }

    io_context_options options;
    live_metrics metrics;
    std::optional<loop_ring> ring;
};

/// Fills the submission queue with nops; returns their number.
inline unsigned fill(loop_ring& ring) {
    unsigned filled = 0;
    while (uring::sqe* const entry = ring->acquire()) {
        *entry = uring::prep::nop();
        entry->user_data = static_cast<std::uint64_t>(completion_kind::ignore);
        ring->commit(entry);
        ++filled;
    }
    return filled;
}

} // namespace loop_parts
