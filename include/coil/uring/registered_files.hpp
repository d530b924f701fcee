#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/detail/registration.hpp>
#include <coil/uring/ring.hpp>

#include <span>

namespace coil::uring {

/// The ring's table of registered ("fixed") files. A slot's number is a *direct descriptor*: an
/// entry with sqe_flag::fixed_file uses it in place of a file descriptor, which saves the look-up.
/// prep::openat_direct, socket_direct, accept_direct and pipe_direct open files directly into a
/// slot, without using a descriptor of the process.
///
///     registered_files table{r, 64};                              // 64 empty slots
///     *s = prep::accept_direct(listener, nullptr, nullptr, 0, file_index_alloc);
///     ...                                                         // cqe::res is the slot
///     *t = prep::recv(slot, buf, sizeof buf, 0);
///     t->flags |= sqe_flag::fixed_file;
///     ...
///     *u = prep::close_direct(slot);
///
/// Results of operations:
///
/// - -EBADF: using, installing (fixed_fd_install) or closing an empty slot; using a slot beyond the
///   end of the table.
/// - -EINVAL: opening or closing a slot beyond the table; O_CLOEXEC and similar flags, which do not
///   apply to slots.
/// - -ENFILE: file_index_alloc found no free slot, or the ring has no table. The opened file is
///   closed again; an accepted connection is lost.
/// - -ENXIO: opening or closing an explicit slot of a ring that has no table.
///
/// Opening into a slot in use replaces its file. Slots may be changed while operations use them:
/// operations already submitted keep the old file, which is closed when the last of them ends.
///
/// A ring has one such table. Linux 5.5, file_index_alloc 5.19. Threading: the ring's thread. The
/// ring must outlive this object, or close() must be called first. Before Linux 6.13 closing waits
/// for the operations that use the table: cancel and drain first.
class registered_files {
public:
    static constexpr unsigned max_slots = 1U << 20;

    /// Without a table until setup() is called.
    registered_files() noexcept = default;

    /// Calls setup(); throws std::system_error, whose message names the cause and the remedy.
    registered_files(ring& r, unsigned slots);

    /// Registers a table of `slots` empty slots. Returns 0, or -errno if none was registered:
    /// -EMFILE (more than RLIMIT_NOFILE or max_slots), -EINVAL (no slots), -EBUSY (the ring or this
    /// object already has a table), -ENOMEM, -EEXIST (not the ring's thread).
    int setup(ring& r, unsigned slots) noexcept;

    /// Unregisters the table; files without another reference are closed. Does nothing without a
    /// table.
    void close() noexcept { table_.close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(table_); }

    /// The number of slots, empty or not.
    unsigned size() const noexcept { return table_.size(); }

    /// Replaces the slots from `slot` on by the files of `fds`. The caller keeps the descriptors
    /// and may close them. -1 empties a slot, files_skip leaves it unchanged. Returns the number of
    /// slots processed, which is smaller than requested if a later descriptor was refused. If the
    /// first one was refused, returns -errno: -EBADF (not open, or an io_uring descriptor),
    /// -ENOMEM. -EINVAL: slots beyond the table. -EBADF: no table.
    int update(unsigned slot, std::span<const int> fds) noexcept;

    /// Empties `count` slots from `slot` on, whether in use or not. Returns 0, or -errno like
    /// update().
    int clear(unsigned slot, unsigned count = 1) noexcept;

    /// Restricts file_index_alloc to slots `first` to `first + count - 1` (initially: all); the
    /// other slots remain for explicit numbers. Returns 0 or -errno: -EINVAL (beyond the table, or
    /// before Linux 6.0), -EBADF (no table).
    int alloc_range(unsigned first, unsigned count) noexcept;

private:
    detail::registration table_;
};

} // namespace coil::uring
