#pragma once

#include <coil/base/assert.hpp>
#include <coil/base/exchange.hpp>
#include <coil/context/detail/loop_signals.hpp>

namespace coil::detail {

/// Whether a loop is to shut down. A request by the owner thread takes effect immediately; one by
/// another thread, when its message has been delivered. Owner thread.
///
///     none ──request(), deliver()──▶ requested ──complete()──▶ none
///       └──deliver() in a service──▶ deferred ──begin_run()──▶ requested
///
/// A service delivers messages on another thread while the loop does not run. A stop that arrives
/// this way is for the next run.
class stop_requests {
public:
    [[nodiscard]] bool requested() const noexcept { return requested_; }
    void request() noexcept { requested_ = true; }
    /// The message of `word` has been delivered.
    void deliver(stop_request& word) noexcept {
        if (in_service_) {
            deferred_ = true;
        } else {
            requested_ = word.arrived() || requested_;
        }
    }
    /// A run begins; a request that was deferred counts now.
    void begin_run(stop_request& word) noexcept {
        COIL_ASSERT(!in_service_);
        if (coil::detail::exchange(deferred_, false)) {
            requested_ = word.arrived() || requested_;
        }
    }
    /// The shutdown is over.
    void complete() noexcept { requested_ = false; }

    void begin_service() noexcept {
        COIL_ASSERT(!in_service_);
        in_service_ = true;
    }
    void end_service() noexcept { in_service_ = false; }

private:
    bool requested_ = false;
    bool in_service_ = false;
    bool deferred_ = false;
};

} // namespace coil::detail
