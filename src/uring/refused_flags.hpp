#pragma once

#include <coil/uring/backend.hpp>

#include <cstdint>
#include <string>

namespace coil::uring::detail {

/// One sentence for an io_uring_setup(2) with these flags that failed with EINVAL. Names the flags
/// that the kernel does not know, if it can be queried.
std::string explain_refused_flags(backend& k, std::uint32_t flags);

} // namespace coil::uring::detail
