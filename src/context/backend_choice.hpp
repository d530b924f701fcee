#pragma once

#include <coil/context/options.hpp>
#include <coil/uring/ring.hpp>

#include <optional>

namespace coil::detail {

/// Creates the ring on the backend `kind`; if that is `automatic`, the environment variable
/// COIL_BACKEND or what works here decides. Throws std::system_error as uring::ring does, and if
/// the variable has another value than io_uring or epoll.
void open_chosen_ring(std::optional<uring::ring>& ring, const uring::ring_options& options,
                      io_backend kind);

} // namespace coil::detail
