#pragma once

#include <coil/context/detail/backend_factory.hpp>

namespace coil::detail {

/// The factory of the backends of contexts whose options name none; empty: Linux's io_uring. For
/// test programs that run all contexts on another backend. Set it while no other thread creates or
/// runs a context.
backend_factory& default_backend_factory() noexcept;

} // namespace coil::detail
