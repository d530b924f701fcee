#include "napi.hpp"

#include <coil/uring/abi.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace coil::detail {

namespace {

std::uint32_t microseconds_of(std::chrono::nanoseconds time) noexcept {
    using namespace std::chrono;
    constexpr microseconds longest = seconds(1);
    const auto polled = duration_cast<microseconds>(time);
    return static_cast<std::uint32_t>(std::clamp(polled, microseconds::zero(), longest).count());
}

} // namespace

bool register_napi(uring::backend& backend, const napi_options& options) noexcept {
    uring::napi wanted{};
    wanted.busy_poll_to = microseconds_of(options.busy_poll);
    if (wanted.busy_poll_to == 0) {
        return false;
    }
    wanted.prefer_busy_poll = options.prefer_busy_poll ? 1 : 0;
    wanted.opcode = uring::napi_op::register_;
    wanted.op_param =
        options.ids.empty() ? uring::napi_tracking::dynamic : uring::napi_tracking::static_;
    // The kernel writes its previous settings to the argument.
    uring::napi argument = wanted;
    if (backend.do_register(uring::register_op::napi, &argument, 1) < 0) {
        return false;
    }
    for (const std::uint32_t id : options.ids) {
        argument = wanted;
        argument.opcode = uring::napi_op::static_add_id;
        argument.op_param = id;
        if (backend.do_register(uring::register_op::napi, &argument, 1) < 0) {
            backend.do_register(uring::register_op::unregister_napi, &argument, 1);
            return false;
        }
    }
    return true;
}

} // namespace coil::detail
