#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/registration.hpp>
#include <coil/uring/ring.hpp>

#include <span>

#include <sys/uio.h>

namespace coil::uring {

/// The ring's table of registered ("fixed") buffers: memory that the kernel maps once, for
/// prep::read_fixed, write_fixed, readv_fixed, writev_fixed and send_zc_fixed, which name a slot
/// and an address range inside the buffer that is in it.
///
///     registered_buffers table{r, 4};                 // four empty slots
///     iovec memory{data, size};
///     if (int n = table.update(0, {&memory, 1}); n < 0)
///         ...
///     *s = prep::read_fixed(fd, data + 4096, 4096, offset, 0);
///
/// An operation that names an empty slot, a slot beyond the table or memory outside the slot's
/// buffer completes with -EFAULT.
///
/// A ring has one such table. A slot may be changed while operations use it: those that were
/// submitted go on with the buffer they found. The memory must stay mapped, and means what it meant
/// when it was registered: after munmap or mremap the kernel goes on with the old pages. The pages
/// count against RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK.
///
/// Linux 5.13. Threads: the ring's. The ring must outlive this object, or close() must come before
/// its end. Before Linux 6.13 closing waits for the operations that use the table: cancel and drain
/// first.
class registered_buffers {
public:
    static constexpr unsigned max_slots = 16384;

    /// No table yet; setup() makes one.
    registered_buffers() noexcept = default;

    /// As setup(), but throws std::system_error with a sentence that names cause and remedy.
    registered_buffers(ring& r, unsigned slots);

    /// Registers a table of `slots` (1 to max_slots) empty slots. 0, or -errno and no table:
    /// -EINVAL (such a number, or a kernel older than 5.13), -EBUSY (the ring has a table, or this
    /// object), -ENOMEM, -EEXIST (not the ring's thread).
    int setup(ring& r, unsigned slots) noexcept;

    /// Unregisters the table with all buffers in it. Without a table it does nothing.
    void close() noexcept { table_.close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(table_); }

    /// How many slots there are, empty or not.
    unsigned size() const noexcept { return table_.size(); }

    /// Puts `buffers` into the slots from `slot` on, in place of what is there; {nullptr, 0} leaves
    /// a slot empty. Returns how many slots were changed: fewer than asked when the next one was
    /// refused. When the first was, -errno: -EFAULT (memory that is not there or not writable; a
    /// length of 0 or more than 1 GiB), -EFAULT or -EOPNOTSUPP (a shared mapping of a file on
    /// disk), -ENOMEM (memory, RLIMIT_MEMLOCK), -EINVAL (slots beyond the table; a length that no
    /// memory has), -EBADF (no table).
    int update(unsigned slot, std::span<const ::iovec> buffers) noexcept;

    /// Empties `count` slots from `slot` on; they may be empty already. 0 or -errno as update().
    int clear(unsigned slot, unsigned count = 1) noexcept;

private:
    detail::registration table_;
};

} // namespace coil::uring
