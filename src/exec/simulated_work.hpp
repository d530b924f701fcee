#pragma once

#include <coil/context/detail/sim_driver.hpp>
#include <coil/exec/detail/work.hpp>

namespace coil::detail {

/// In a simulation, arranges that this thread runs the work later, and returns true.
inline bool run_simulated(work& w) noexcept {
    if (current_sim_driver == nullptr) [[likely]] {
        return false;
    }
    current_sim_driver->run_later(w, [](queue_node& node) { static_cast<work&>(node).run(); });
    return true;
}

} // namespace coil::detail
