#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/detail/registration.hpp>
#include <coil/uring/ring.hpp>

#include <span>

#include <sys/uio.h>

namespace coil::uring {

/// The ring's table of registered ("fixed") buffers: memory that the kernel maps once. The
/// operations prep::read_fixed, write_fixed, readv_fixed, writev_fixed and send_zc_fixed name a
/// slot and an address range inside its buffer.
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
/// A ring has one such table. A slot may be changed while operations use it: operations already
/// submitted keep the old buffer. The memory must stay mapped; after munmap(2) or mremap(2) the
/// kernel continues to use the old pages. The pages count against RLIMIT_MEMLOCK unless the process
/// has CAP_IPC_LOCK.
///
/// Linux 5.13. Threading: the ring's thread. The ring must outlive this object, or close() must be
/// called first. Before Linux 6.13 closing waits for the operations that use the table: cancel and
/// drain first.
class registered_buffers {
public:
    static constexpr unsigned max_slots = 16384;

    /// Without a table until setup() is called.
    registered_buffers() noexcept = default;

    /// Calls setup(); throws std::system_error, whose message names the cause and the remedy.
    registered_buffers(ring& r, unsigned slots);

    /// Registers a table of `slots` (1 to max_slots) empty slots. Returns 0, or -errno if none was
    /// registered: -EINVAL (invalid number, or a kernel older than 5.13), -EBUSY (the ring or this
    /// object already has a table), -ENOMEM, -EEXIST (not the ring's thread).
    int setup(ring& r, unsigned slots) noexcept;

    /// Unregisters the table and all its buffers. Does nothing without a table.
    void close() noexcept { table_.close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(table_); }

    /// The number of slots, empty or not.
    unsigned size() const noexcept { return table_.size(); }

    /// Replaces the slots from `slot` on by `buffers`; {nullptr, 0} empties a slot. Returns the
    /// number of slots changed, which is smaller than requested if a later buffer was refused. If
    /// the first one was refused, returns -errno: -EFAULT (memory not mapped or not writable; a
    /// length of 0 or above 1 GiB), -EFAULT or -EOPNOTSUPP (a shared mapping of a file on disk),
    /// -ENOMEM (memory, RLIMIT_MEMLOCK), -EINVAL (slots beyond the table; an impossible length),
    /// -EBADF (no table).
    int update(unsigned slot, std::span<const ::iovec> buffers) noexcept;

    /// Empties `count` slots from `slot` on, whether in use or not. Returns 0, or -errno like
    /// update().
    int clear(unsigned slot, unsigned count = 1) noexcept;

private:
    detail::registration table_;
};

} // namespace coil::uring
