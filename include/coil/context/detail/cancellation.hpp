#pragma once

#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/loop_ring.hpp>

#include <cstdint>

namespace coil::detail {

/// Requests that the kernel cancel operations in flight. A request that finds no space in the
/// submission queue, or that fails, is repeated a millisecond later, so no request is lost. Owner
/// thread.
class cancellation {
public:
    cancellation(loop_ring& ring, live_metrics& metrics) noexcept
        : ring_(ring), metrics_(metrics) {}
    cancellation(const cancellation&) = delete;
    cancellation& operator=(const cancellation&) = delete;

    /// Makes one request for each entry in flight of an operation that is `cancelling`.
    void request(io_op& op) noexcept;
    /// Queues the operation for another request(), a millisecond later.
    void retry_later(io_op& op) noexcept;
    /// Discards the pending retry of an operation.
    void forget(io_op& op) noexcept;

    [[nodiscard]] bool has_retries() const noexcept { return !retrying_.empty(); }
    /// When the retries are due, while there are any.
    [[nodiscard]] std::int64_t retry_at_ns() const noexcept { return retry_at_ns_; }
    /// Makes the requests that are due.
    void retry() noexcept;

private:
    loop_ring& ring_;
    live_metrics& metrics_;
    io_op_queue retrying_;
    std::int64_t retry_at_ns_ = 0;
};

} // namespace coil::detail
