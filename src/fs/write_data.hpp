#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <sys/types.h>

namespace coil::fs::detail {

/// Writes the whole buffer on the blocking pool with write(2), or with pwrite(2) if `offset` is
/// ≥ 0. Writes in pieces and checks for a stop request before each. Returns 0 or -errno.
///
/// For whole files: one job per 16 MiB, and the file's position stays correct after a short write
/// (see file::write). A write to a file that is neither regular nor a block device (a pipe, a
/// terminal, a socket) may wait for a reader indefinitely, so it goes through the ring.
task<io_result> write_data(int fd, const_buffer data, ::off_t offset = -1);

} // namespace coil::fs::detail
