#pragma once

#include <coil/context/simulation.hpp>
#include <coil/exec/detail/work.hpp>

namespace coil::detail {

/// Returns true in a simulation, where this thread runs the work later.
inline bool run_simulated(work& w) noexcept {
    if (current_simulation == nullptr) [[likely]] {
        return false;
    }
    current_simulation->run_later(w, [](queue_node& node) { static_cast<work&>(node).run(); });
    return true;
}

} // namespace coil::detail
