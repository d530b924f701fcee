#pragma once

#include <coil/context/event_loop.hpp>
#include <coil/uring/perform.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>

#include <unistd.h>

// Calls beside the ring reach the world in which the calling coroutine runs: its context's kernel.
// Elsewhere (a plain thread, the blocking pool) that is Linux.

namespace coil::detail {

/// The kernel of the context that runs the caller, or for which a simulation does so; null when
/// there is none.
inline uring::kernel* current_kernel() noexcept {
    event_loop* const loop = current_loop != nullptr ? current_loop : asked_by;
    return loop != nullptr ? loop->kernel() : nullptr;
}

/// The same when that kernel has a world of its own, else null: the caller may use Linux's calls.
inline uring::kernel* current_world() noexcept {
    uring::kernel* const kernel = current_kernel();
    return kernel != nullptr && kernel->has_own_world() ? kernel : nullptr;
}

/// Does at once what `request` asks for: see uring::kernel::perform. A value ≥ 0 or −errno.
inline int perform(const uring::sqe& request) noexcept {
    uring::kernel* const kernel = current_kernel();
    return kernel != nullptr ? kernel->perform(request) : uring::perform_on_linux(request);
}

/// close(2), where nobody can wait for it: 0 or −errno. A descriptor of a world that the caller is
/// not in is left to that world's end (−EBADF).
inline int close_descriptor(int fd) noexcept {
    if (fd >= uring::first_world_descriptor) [[unlikely]] {
        return perform(uring::prep::close(fd));
    }
    return ::close(fd) == 0 ? 0 : -errno;
}

} // namespace coil::detail
