// Waiting for the kernel in a destructor.

#include "event_loop_enter.hpp"

#include <coil/context/event_loop.hpp>

namespace coil::detail {

void event_loop::drain(const io_op& wait) noexcept {
    while (wait.pending()) {
        const uring::timespec soon{0, 1'000'000};
        ring_.enter(1, &soon, 0);
        reap();
        cancellations_.retry();
    }
}

} // namespace coil::detail
