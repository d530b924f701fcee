#pragma once

#include <coil/context/napi_options.hpp>
#include <coil/uring/backend.hpp>

namespace coil::detail {

/// Registers NAPI busy polling for the ring of this backend if the options request it. Returns
/// whether it is active. If the kernel refuses a part of the request, nothing stays registered.
[[nodiscard]] bool register_napi(uring::backend& backend, const napi_options& options) noexcept;

} // namespace coil::detail
