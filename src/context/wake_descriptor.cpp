#include <coil/context/detail/sqe_slot.hpp>
#include <coil/context/detail/wake_descriptor.hpp>
#include <coil/core/detail/backoff.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace coil::detail {

wake_descriptor::wake_descriptor() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) {
        throw std::system_error(errno, std::generic_category(), "coil: eventfd");
    }
}

wake_descriptor::~wake_descriptor() { ::close(fd_); }

void wake_descriptor::signal() const noexcept {
    const std::uint64_t one = 1;
    // The only error is EAGAIN: the counter is full, so the descriptor is readable already.
    [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);
}

void wake_descriptor::submit_read(loop_ring& ring) noexcept {
    if (!ring.reserve(1)) {
        return;
    }
    uring::sqe* entry = ring->acquire();
    *entry = uring::prep::read(fd_, &count_, sizeof count_, uring::prep::current_position);
    entry->user_data = static_cast<std::uint64_t>(completion_kind::wake);
    ring->commit(entry);
    watched_ = true;
}

void wake_descriptor::await_signals() noexcept {
    if (account_.untouched()) {
        return;
    }
    // A thread that ended a sleep may not have called signal() yet, and the loop may be destroyed
    // soon. So wait for its write(2), after which it accesses nothing here. The additional signal
    // of this thread, which it reads by a system call, shows ThreadSanitizer that all of these
    // writes happen before the destruction.
    account_.expect();
    signal();
    for (backoff wait; !account_.settled();) {
        std::uint64_t count = 0;
        if (::read(fd_, &count, sizeof count) == sizeof count) {
            account_.saw(count);
        } else {
            wait.once_more();
        }
    }
    account_.clear();
}

} // namespace coil::detail
