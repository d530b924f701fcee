#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <sys/types.h>

namespace coil::fs::detail {

/// Writes the whole buffer by write(2), or by pwrite(2) at an offset ≥ 0, on the blocking pool, in
/// pieces between which it can be stopped: 0 or -errno.
///
/// For whole files: one job per 16 MiB, and the file's position stays correct after a short write
/// (see file::write). A file that is neither regular nor a disk (a pipe, a terminal, a socket) may
/// wait for a reader indefinitely, so it is written through the ring.
task<io_result> write_data(int fd, const_buffer data, ::off_t offset = -1);

} // namespace coil::fs::detail
