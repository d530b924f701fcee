#pragma once

#include <atomic>

namespace coil::detail {

/// Called by assertion_failed() after it has printed its line and before it aborts: prints what is
/// known about the task that runs. Set by the part of coil that knows tasks, if it is linked.
constinit inline std::atomic<void (*)() noexcept> failure_hook{nullptr};

} // namespace coil::detail
