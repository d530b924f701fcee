#pragma once

#include <coil/core/detail/stop_token_awaiter.hpp>

namespace coil::this_task {

/// co_await returns the stop token of the current task, without suspending.
inline detail::stop_token_awaiter stop_token() noexcept { return {}; }

} // namespace coil::this_task
