#pragma once

#include <coil/uring/emulated_backend.hpp>

/// Deprecated: include <coil/uring/emulated_backend.hpp>. This header goes with the next release.

namespace coil::uring {

using emulated_kernel [[deprecated("use emulated_backend")]] = emulated_backend; // retired

} // namespace coil::uring
