#pragma once

#include <coil/uring/backend.hpp>

#include <memory>

/// Deprecated: include <coil/uring/backend.hpp>. This header will be removed in the next release.

namespace coil::uring {

using kernel [[deprecated("use coil::uring::backend")]] = backend; // retired

[[deprecated("use make_linux_backend()")]] inline std::unique_ptr<backend>
make_linux_kernel() { // retired
    return make_linux_backend();
}

} // namespace coil::uring
