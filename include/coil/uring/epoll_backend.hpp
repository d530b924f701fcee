#pragma once

#include <coil/uring/backend.hpp>

#include <memory>

namespace coil::uring {

/// A user-space backend over epoll(7), for machines where io_uring is not available. It executes
/// submissions with plain system calls. Pollable operations are tried immediately and again when
/// epoll reports readiness. Calls on files, and other calls that may block, run on a pool of
/// threads with a limit for each worker class, as in io-wq. docs/reference/operations.md lists how
/// each operation runs.
///
/// Differences from io_uring:
/// - An operation on a descriptor refers to the number, not to the file. If the descriptor is
///   closed while an operation waits on it, the operation stays pending until it is cancelled; it
///   is never executed on another file that reuses the number. An operation queued for a thread
///   keeps its number reserved until it has run. A plain close(2) is noticed later than a `close`
///   submitted to the ring: an operation submitted just before it may be executed on the new file.
///   If a file is closed before the backend has seen its end (a closed peer, an error), and another
///   file reuses the number, the first wait on the new file may notice an event up to 2 ms late, or
///   not at all if the new file is closed by a plain close(2) as well before that.
/// - A multishot poll reports the states that each loop turn finds, not each change between turns.
/// - A ring belongs to the process that created it; a child process cannot use it.
/// - Not supported: setup flags such as sqpoll, iopoll, sqe128, cqe32, no_mmap and no_sqarray,
///   eventfds for completions, restrictions, personalities, resource tags, resizing.
/// - accept sets O_NONBLOCK on the listening socket permanently; connect sets it for the duration
///   of connect(2). The flags of other descriptors do not change.
/// - Zero-copy operations copy.
/// - native_handle() is an epoll descriptor. msg_ring reaches other rings of this backend in the
///   same process, with data only (no files).
///
/// Linux 4.5; Linux 5.11 adds waits with nanosecond resolution.
std::unique_ptr<backend> make_epoll_backend();

} // namespace coil::uring
