#include <coil/context/context_clock.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/sim_driver.hpp>

#include <chrono>

namespace coil {

context_clock::time_point context_clock::now() noexcept {
    detail::event_loop* const loop =
        detail::current_loop != nullptr ? detail::current_loop : detail::asked_by;
    return loop != nullptr ? loop->now() : std::chrono::steady_clock::now();
}

} // namespace coil
