#pragma once

#include <coil/context/detail/backend_factory.hpp>

namespace coil::detail {

/// Creates the backends of contexts whose options specify no backend; if empty, they use Linux's
/// io_uring. For test programs that run all contexts on another backend. Set it while no other
/// thread creates or runs a context.
backend_factory& default_backend_factory() noexcept;

} // namespace coil::detail
