#pragma once

#include <coil/context/detail/backend_factory.hpp>

namespace coil::detail {

/// Creates the backends of contexts that have no io_context_options::make_backend. If it is empty,
/// io_context_options::backend decides. For test programs that run all contexts on another backend.
/// Set it while no other thread creates or runs a context.
backend_factory& default_backend_factory() noexcept;

} // namespace coil::detail
