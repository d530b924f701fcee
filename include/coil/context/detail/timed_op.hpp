#pragma once

#include <coil/context/detail/io_op.hpp>
#include <coil/context/detail/timer_wheel.hpp>
#include <coil/context/sleep.hpp>

#include <cstdint>

namespace coil::detail {

/// An operation whose timeout is a timer of the context: the part that all instances of its awaiter
/// share, so that a list of tasks can show the timeout.
class timed_op : protected io_op, protected timer_call {
protected:
    timed_op(void (*expire)(timer_node&) noexcept, std::int64_t ns,
             sleep_awaitable::from origin) noexcept
        : io_op(op_state::kind::timed), timer_call(expire), ns_(ns), origin_(origin) {}
    ~timed_op() = default;

    /// A duration, or a time of steady_clock.
    [[nodiscard]] std::int64_t ns() const noexcept { return ns_; }
    [[nodiscard]] sleep_awaitable::from origin() const noexcept { return origin_; }

private:
    friend class leaf_search;

    std::int64_t ns_;
    sleep_awaitable::from origin_;
};

} // namespace coil::detail
