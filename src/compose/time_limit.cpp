#include <coil/compose/time_limit.hpp>

#include <chrono>
#include <optional>

namespace coil::this_task::detail {

std::optional<deadline_awaiter::time_point> deadline_awaiter::await_resume() const noexcept {
    if (ns_ == coil::detail::task_owner::no_deadline) {
        return std::nullopt;
    }
    return time_point(std::chrono::nanoseconds(ns_));
}

} // namespace coil::this_task::detail
