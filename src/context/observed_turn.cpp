// The turns of a loop while a trace is taken or a tool has attached to the USDT probes.

#include "event_loop_enter.hpp"
#include "trace_recorder.hpp"
#include "usdt.hpp"

#include <coil/context/detail/probes.hpp>
#include <coil/core/detail/backtrace_awaiter.hpp>

namespace coil::detail {

// In a section in which the kernel may count attached tools: see usdt.hpp.
[[gnu::section(".probes")]] observers all_observers{};

/// run_ready() while a trace is taken or a tool is attached. Does not measure ready_delay, because
/// observing the resumptions distorts it.
bool event_loop::run_observed() {
    probe_.rest();
    std::int64_t begin = is_tracing() ? trace_now_ns() : 0;
    for (unsigned left = budget_.resumptions(); left > 0; --left) {
        if (!ready_.has_next()) {
            return false;
        }
        const std::coroutine_handle<> next = ready_.pop();
        const void* const frame = next.address();
        const void* const function = resume_function(frame);
        COIL_USDT2(resume, frame, function);
        resume(next);
        if (is_tracing()) {
            begin = record_resumption(begin, frame, function);
        }
    }
    return true;
}

/// reap() while a trace is taken, a tool is attached, or the parker measures. A positive result is
/// mostly a number of bytes. Some are other numbers, such as descriptors, which do no harm: they
/// are the same however the loop waits.
void event_loop::reap_observed() noexcept {
    const std::int64_t now = is_tracing() ? trace_now_ns() : 0;
    std::uint64_t bytes = 0;
    metrics_.completions += ring_->for_each_cqe([&](const uring::cqe& completion) {
        bytes += completion.res > 0 ? static_cast<std::uint64_t>(completion.res) : 0;
        if ((completion.user_data & kind_mask) ==
            static_cast<std::uint64_t>(completion_kind::entry)) {
            COIL_USDT3(complete, completion.user_data, completion.res, completion.flags);
            if (is_tracing()) {
                record_completion(now, completion);
            }
        }
        route(completion);
    });
    parker_.note_transferred(bytes);
}

void note_submissions(uring::ring& ring, std::uint32_t& seen) noexcept {
    const std::int64_t now = is_tracing() ? trace_now_ns() : 0;
    ring.for_each_ready_sqe(seen, [now](const uring::sqe& entry) {
        if ((entry.user_data & kind_mask) == static_cast<std::uint64_t>(completion_kind::entry)) {
            COIL_USDT3(submit, entry.user_data, entry.opcode, entry.fd);
            if (is_tracing()) {
                record_submission(now, entry);
            }
        }
    });
}

void note_wait(std::coroutine_handle<> waiter, wait_kind kind) noexcept {
    record_wait(waiter.address(), static_cast<unsigned>(kind));
}

void note_spawn(promise_base& task) noexcept { record_spawn(task); }

} // namespace coil::detail
