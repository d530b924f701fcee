#pragma once

#include <coil/base/late.hpp>
#include <coil/context/options.hpp>
#include <coil/uring/backend.hpp>
#include <coil/uring/ring.hpp>

#include <memory>
#include <string>

namespace coil::detail {

/// Creates the ring on the backend `kind`. If that is `automatic`, the environment variable
/// COIL_BACKEND decides; if it is not set, io_uring is used where it works, and epoll elsewhere.
/// Throws std::system_error like uring::ring, and if the variable has a value other than io_uring
/// or epoll.
void open_chosen_ring(late<uring::ring>& ring, const uring::ring_options& options, io_backend kind);

/// The epoll backend. `reason`: why io_uring cannot be used; empty if it was not tried.
/// coil::minimal replaces this function by one that throws std::system_error with the reason.
[[nodiscard]] std::unique_ptr<uring::backend> make_fallback_backend(const std::string& reason);

} // namespace coil::detail
