#pragma once

#include <cstdint>

namespace coil::detail {

/// What a context with idle_policy::spin does when nothing is ready.
enum class idle_way : std::uint8_t {
    spin,  ///< polls for completions before it sleeps
    park,  ///< sleeps until the next completion
    batch, ///< sleeps until several completions have accumulated, or for a short time
};

} // namespace coil::detail
