#pragma once

#include <coil/uring/kernel.hpp>

#include <memory>

namespace coil::uring {

/// A kernel in user space over epoll(7), for machines where io_uring is forbidden: it does what the
/// submissions ask for by plain system calls. What can be polled is tried at once and again when
/// epoll says so; files and other calls that wait for a device go to a few threads of its own, at
/// most `epoll_kernel_limits`; docs/reference/operations.md says which call goes which way.
///
/// What differs from io_uring:
/// - An operation on a descriptor holds the number, not the file. When the descriptor is closed
///   while an operation waits on it, the operation stays pending until it is cancelled, and is
///   never executed on another file that gets the number. One that a thread is to execute on it
///   keeps the number from others until it has. A plain close(2) is noticed later than a
///   `close` of the ring's own: what was submitted a moment before it may be executed on the new
///   file. Where a file takes the number of one that was closed without an end having been seen
///   on it (a peer that closed, an error), a first wait may notice an event up to 2 ms late, or,
///   when that file is closed by a plain close(2) before that, not at all.
/// - A multishot poll reports the states that the loop finds, not each change between two turns.
/// - A ring belongs to the process that made it: a child cannot use it.
/// - Not there: setup flags such as sqpoll, iopoll, sqe128, cqe32, no_mmap and no_sqarray, eventfds
///   for completions, restrictions, personalities, resource tags, resizing.
/// - O_NONBLOCK is set on listening sockets that accept is used on, and stays set; connect sets it
///   for the duration of the connect(2). No other descriptor's flags are touched.
/// - Zero-copy operations copy.
/// - The queues' descriptor (native_handle()) is an epoll descriptor; msg_ring reaches other rings
///   of this kind in the same process, with data and no files.
///
/// Linux 4.5; better with 5.11 (waits in nanoseconds).
std::unique_ptr<kernel> make_epoll_kernel();

} // namespace coil::uring
