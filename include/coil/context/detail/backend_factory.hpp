#pragma once

#include <coil/base/std_function.hpp>
#include <coil/base/std_memory.hpp>

namespace coil::uring {
class backend;
}

namespace coil::detail {

/// Creates the backends of a context's rings, one per ring.
using backend_factory = std::function<std::unique_ptr<uring::backend>()>;

} // namespace coil::detail
