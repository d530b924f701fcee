// Destructors that wait for the kernel, and registered memory.

#include "event_loop_enter.hpp"

#include <coil/context/detail/event_loop.hpp>

#include <span>

namespace coil::detail {

void event_loop::drain(const io_op& wait) noexcept {
    while (wait.pending()) {
        const uring::timespec soon{0, 1'000'000};
        ring_.enter(1, &soon, 0);
        reap();
        cancellations_.retry();
    }
}

int event_loop::add_buffers(std::span<const ::iovec> memory) noexcept {
    return ring_.tables().add_buffers(*ring_, options_.registered_buffers, memory);
}

} // namespace coil::detail
