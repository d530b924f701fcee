#pragma once

#include <coil/context/detail/descriptor_owners.hpp>
#include <coil/context/detail/event_loop.hpp>
#include <coil/context/detail/sim_driver.hpp>
#include <coil/uring/perform.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>

#include <unistd.h>

// Synchronous calls. In a coroutine they go to the backend of its context, and in a function that a
// simulated world runs on behalf of a context (blocking(), a thread pool) to the backend of that
// context. On all other threads they go to Linux.

namespace coil::detail {

/// The backend of the context that runs the caller, or for which a simulation runs it; null if
/// there is none.
inline uring::backend* current_backend() noexcept {
    event_loop* const loop = current_loop != nullptr ? current_loop : asked_by;
    return loop != nullptr ? loop->backend() : nullptr;
}

/// current_backend() if that has a world of its own. Otherwise null, and the caller may use Linux's
/// system calls.
inline uring::backend* current_world() noexcept {
    uring::backend* const backend = current_backend();
    return backend != nullptr && backend->has_own_world() ? backend : nullptr;
}

/// Executes `request` synchronously: see uring::backend::perform. Returns a value >= 0 or -errno.
inline int perform(const uring::sqe& request) noexcept {
    uring::backend* const backend = current_backend();
    return backend != nullptr ? backend->perform(request) : uring::perform_on_linux(request);
}

/// close(2) for destructors, which cannot wait: returns 0 or -errno. A descriptor of a simulated
/// world is not closed from outside of that world (-EBADF); the world closes it at its end.
inline int close_descriptor(int fd) noexcept {
    if (fd >= uring::first_world_descriptor) [[unlikely]] {
        return perform(uring::prep::close(fd));
    }
    return ::close(fd) == 0 ? 0 : -errno;
}

/// The same for the destructor of an owner. `owner` is its type for messages: "net::socket", ...
inline void close_owned_descriptor(int fd, [[maybe_unused]] const char* owner) noexcept {
#if COIL_ASSERTIONS
    check_owned_descriptor(fd, owner);
    if (current_loop != nullptr) {
        current_loop->descriptors().closing(fd, owner);
    }
#endif
    [[maybe_unused]] const int result = close_descriptor(given_up(fd));
#if COIL_ASSERTIONS
    note_descriptor_closed(fd, result, owner);
#endif
}

} // namespace coil::detail
