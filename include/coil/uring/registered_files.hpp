#pragma once

#include <coil/uring/abi.hpp>
#include <coil/uring/registration.hpp>
#include <coil/uring/ring.hpp>

#include <span>

namespace coil::uring {

/// The ring's table of registered ("fixed") files. A slot's number is a *direct descriptor*: an
/// entry with sqe_flag::fixed_file names it where others name a file descriptor, which saves the
/// look-up; and prep::openat_direct, socket_direct, accept_direct and pipe_direct open files
/// straight into a slot, so that they never cost a descriptor of the process.
///
///     registered_files table{r, 64};                              // 64 empty slots
///     *s = prep::accept_direct(listener, nullptr, nullptr, 0, file_index_alloc);
///     ...                                                         // cqe::res is the slot
///     *t = prep::recv(slot, buf, sizeof buf, 0);
///     t->flags |= sqe_flag::fixed_file;
///     ...
///     *u = prep::close_direct(slot);
///
/// What operations answer:
///
/// - -EBADF: use, fixed_fd_install or close_direct of an empty slot; use of one beyond the table.
/// - -EINVAL: opening into a slot beyond the table, or closing it; O_CLOEXEC and its like, which
///   mean nothing to a slot.
/// - -ENFILE: file_index_alloc found no free slot, or there is no table. What was opened is closed
///   again; so an accepted connection is lost.
/// - -ENXIO: there is no table.
///
/// Opening into a slot that is in use replaces the file in it. Slots may be changed while
/// operations use them: those that were submitted go on with the file they found, which is closed
/// when the last of them has ended.
///
/// A ring has one such table. Linux 5.5, file_index_alloc 5.19. Threads: the ring's. The ring must
/// outlive this object, or close() must come before its end. Before Linux 6.13 closing waits for
/// the operations that use the table: cancel and drain first.
class registered_files {
public:
    static constexpr unsigned max_slots = 1U << 20;

    /// No table yet; setup() makes one.
    registered_files() noexcept = default;

    /// As setup(), but throws std::system_error with a sentence that names cause and remedy.
    registered_files(ring& r, unsigned slots);

    /// Registers a table of `slots` empty slots. 0, or -errno and no table: -EMFILE (more than
    /// RLIMIT_NOFILE or max_slots), -EINVAL (none), -EBUSY (the ring has a table, or this object),
    /// -ENOMEM, -EEXIST (not the ring's thread).
    int setup(ring& r, unsigned slots) noexcept;

    /// Unregisters the table; files that are open nowhere else are closed. Without a table it does
    /// nothing.
    void close() noexcept { table_.close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(table_); }

    /// How many slots there are, empty or not.
    unsigned size() const noexcept { return table_.size(); }

    /// Puts the files of `fds` into the slots from `slot` on, in place of what is there. The
    /// descriptors stay the caller's, who may close them. -1 empties a slot, files_skip leaves it
    /// as it is. Returns how many slots were dealt with: fewer than asked when the next one was
    /// refused. When the first was, -errno: -EBADF (no such descriptor, or an io_uring's),
    /// -ENOMEM. -EINVAL: slots beyond the table. -EBADF: no table.
    int update(unsigned slot, std::span<const int> fds) noexcept;

    /// Empties `count` slots from `slot` on; they may be empty already. 0 or -errno as update().
    int clear(unsigned slot, unsigned count = 1) noexcept;

    /// From now on file_index_alloc takes slots `first` to `first + count - 1` only (at first:
    /// all), which leaves the others to numbers of the caller's choice. 0 or -errno: -EINVAL
    /// (beyond the table, or before Linux 6.0), -EBADF (no table).
    int alloc_range(unsigned first, unsigned count) noexcept;

private:
    detail::registration table_;
};

} // namespace coil::uring
