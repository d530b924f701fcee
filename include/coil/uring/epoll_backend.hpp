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
///   keeps its number reserved until it has run. Exception: an operation submitted just before a
///   plain close(2), rather than a `close` submitted to the ring, may be executed on the new file.
///   If a file is closed before the backend has seen its end (a closed peer, an error), and another
///   file reuses the number, the first wait on the new file may notice an event up to 2 ms late, or
///   not at all if the new file is also closed by a plain close(2) before that.
/// - A multishot poll reports the state of the file at each epoll_wait(2), not the changes in
///   between.
/// - A ring belongs to the process that created it; a child process cannot use it.
/// - Cancellation by descriptor compares files. Without kcmp(2), which sandboxes often forbid, two
///   numbers count as the same file only if they refer to the same socket.
/// - Not supported: setup flags such as sqpoll, iopoll, sqe128, cqe32, no_mmap and no_sqarray,
///   completions of two sizes, eventfds for completions, restrictions, personalities, resource
///   tags, resizing, cloning of registered buffers, queries, a ring's registered number, buffer
///   rings in the kernel's memory (pbuf_ring_flag::mmap), registered waits, the choice of a clock
///   and a signal mask for waits, and socket commands other than getsockopt and setsockopt.
/// - accept sets O_NONBLOCK on the listening socket permanently; connect sets it for the duration
///   of connect(2). The flags of other descriptors do not change.
/// - Zero-copy operations copy.
/// - An invalid address is a crash instead of -EFAULT for the structures that io_uring_enter(2)
///   takes, for a recvmsg whose header is in read-only memory, and for the provided buffer of a
///   multishot recvmsg.
/// - Some waits occupy a thread: those for a futex, and those for a child without a pidfd. To
///   cancel one, the backend waits until the thread has left its system call, which takes tens of
///   microseconds. If this takes more than tens of milliseconds, the cancellation returns
///   -EALREADY, and the wait ends later.
/// - A multishot request on a file that cannot be polled fails with the operation's own error (for
///   accept on a regular file -ENOTSOCK), even if io_uring would hand it to a thread
///   (sqe_flag::async, after a drain) and return -EBADFD.
/// - A bundle without a length receives a datagram into all buffers that it needs; io_uring uses as
///   many as an earlier request of the ring needed, at least one, and truncates the datagram. With
///   a length (`len`), both use the buffers for that length.
/// - An entry with several errors may report a different one of them. On a ring with
///   setup::submit_all, the addresses in an entry without links are checked when it begins, not at
///   submission.
/// - A bundle with MSG_PEEK reports bytes once; io_uring may put them into several buffers again.
/// - A receive with MSG_TRUNC and MSG_WAITALL discards `len` bytes of a TCP stream; io_uring
///   discards more if they arrive in parts.
/// - A send from a group of classic provided buffers sends at most `len` bytes; io_uring sends the
///   buffer as a whole.
/// - An fsync of a range (`len` is not 0) writes the whole file.
/// - native_handle() is an epoll descriptor. msg_ring reaches other rings of this backend in the
///   same process, with data only (no files).
///
/// Linux 4.5; Linux 5.11 adds waits with nanosecond resolution.
std::unique_ptr<backend> make_epoll_backend();

} // namespace coil::uring
