// How long tasks have waited.

#include "task_writing.hpp"
#include "trace_ring.hpp"

#include <coil/context/detail/probes.hpp>

#include <algorithm>

namespace coil::detail {

namespace {

/// Whether the wait is that of an awaiter_base, whose beginning a trace records.
bool is_traced(wait_record::what kind) noexcept {
    switch (kind) {
        using enum wait_record::what;
    case operation:
    case queued:
    case stream:
    case sleep:
    case object:
    case join:
    case child:
        return true;
    default:
        return false;
    }
}

} // namespace

wait_times::wait_times(std::span<const context_snapshot> contexts) {
    if (!is_tracing()) {
        return;
    }
    for (const auto& ring : trace_rings_alone()) {
        const bool runs_one =
            std::any_of(contexts.begin(), contexts.end(), [&ring](const context_snapshot& context) {
                return context.thread == ring->thread() && !context.is_simulated;
            });
        if (!runs_one) {
            continue;
        }
        for (const trace_event& event : ring->copy()) { // the oldest first
            if (event.kind == trace_kind::wait) {
                begins_[reinterpret_cast<const void*>(event.a)] = {ring->thread(), event.time_ns};
            }
        }
    }
}

std::int64_t wait_times::of(const task_record& task, const context_snapshot& context) const {
    if (task.wait.begun_ns != wait_record::none) {
        return std::max<std::int64_t>(context.now_ns - task.wait.begun_ns, 0);
    }
    if (begins_.empty() || !is_traced(task.wait.kind)) {
        return -1;
    }
    // The newest recorded wait of this coroutine, if it began on this thread. A wait on another
    // thread would be an earlier one; the record of the later one may have been overwritten.
    const auto found = begins_.find(task.leaf);
    return found != begins_.end() && found->second.thread == context.thread
               ? std::max<std::int64_t>(context.now_ns - found->second.time_ns, 0)
               : -1;
}

} // namespace coil::detail
