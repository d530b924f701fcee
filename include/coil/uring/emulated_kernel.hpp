#pragma once

#include <coil/uring/emulated_backend.hpp>

/// Deprecated: include <coil/uring/emulated_backend.hpp>. This header will be removed in the next
/// release.

namespace coil::uring {

using emulated_kernel [[deprecated("use emulated_backend")]] = emulated_backend; // retired

} // namespace coil::uring
