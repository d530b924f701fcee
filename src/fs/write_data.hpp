#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <sys/types.h>

namespace coil::fs::detail {

/// Writes all of the buffer by write(2), or by pwrite(2) at an offset ≥ 0, on the blocking pool, in
/// pieces between which it can be stopped: 0 or −errno.
///
/// For whole files: one hop for 16 MiB, and the file's position counts what was written also where
/// a write is cut short (see file::write). What is neither a regular file nor a disk (a pipe, a
/// terminal, a socket) may wait for a reader for ever: it goes through the ring.
task<io_result> write_data(int fd, const_buffer data, ::off_t offset = -1);

} // namespace coil::fs::detail
