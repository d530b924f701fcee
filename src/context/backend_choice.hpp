#pragma once

#include <coil/context/options.hpp>
#include <coil/uring/ring.hpp>

#include <optional>

namespace coil::detail {

/// Makes the ring on the kernel that `kind` and the environment ask for. Throws std::system_error
/// as uring::ring does, and for a COIL_BACKEND that is none.
void open_chosen_ring(std::optional<uring::ring>& ring, const uring::ring_options& options,
                      io_backend kind);

} // namespace coil::detail
