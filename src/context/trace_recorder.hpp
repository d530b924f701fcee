#pragma once

#include <coil/core/detail/promise_base.hpp>
#include <coil/uring/abi.hpp>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace coil::detail {

// The events of a trace. Each is recorded by the thread on which it happens, and only while
// is_tracing(). The functions are weak, so that their callers do not link the recorder. Starting a
// trace links it, so they exist whenever they are called.

[[nodiscard]] inline std::int64_t trace_now_ns() noexcept {
    ::timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// A coroutine was resumed at `begin_ns` and has suspended or ended now. Returns the current time,
/// which is the beginning of the next resumption.
[[gnu::weak]] std::int64_t record_resumption(std::int64_t begin_ns, const void* frame,
                                             const void* function) noexcept;
[[gnu::weak]] void record_submission(std::int64_t now_ns, const uring::sqe& entry) noexcept;
[[gnu::weak]] void record_completion(std::int64_t now_ns, const uring::cqe& completion) noexcept;
[[gnu::weak]] void record_wait(const void* frame, unsigned kind) noexcept;
[[gnu::weak]] void record_spawn(promise_base& task) noexcept;

struct recorded_span {
    std::string_view name;
    std::int64_t begin_ns;
    std::uint64_t trace_high;
    std::uint64_t trace_low;
    std::uint64_t id;
    std::uint64_t parent;
    bool sampled;
};
[[gnu::weak]] void record_span(const recorded_span& span) noexcept;

/// Called when an io_context is created: starts the trace that COIL_TRACE or `file` requests, once.
/// Replaceable, see src/minimal.
void begin_requested_trace(const std::string& file);

} // namespace coil::detail
