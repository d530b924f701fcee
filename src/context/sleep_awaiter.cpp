#include <coil/context/detail/sleep_awaiter.hpp>

namespace coil::detail {

void end_sleep(sleep_timer& timer) noexcept { static_cast<sleep_awaiter&>(timer).end(0); }

} // namespace coil::detail
