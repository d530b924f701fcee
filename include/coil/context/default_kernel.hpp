#pragma once

#include <coil/context/options.hpp>

namespace coil::detail {

/// What makes the kernels of contexts whose options name none; empty: the Linux kernel. For a test
/// program that wants all its contexts on another one. To be set while no other thread makes or
/// runs a context.
kernel_factory& default_kernel_factory() noexcept;

} // namespace coil::detail
