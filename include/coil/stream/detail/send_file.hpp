#pragma once

#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::detail {

/// Checks that a file can be read at an offset, and read again if sending fails: 0 or -errno.
int check_offset(int file, std::uint64_t offset) noexcept;

/// sendfile() for descriptors.
task<io_result> send_file(int socket, int file, std::uint64_t offset, std::size_t count);

} // namespace coil::detail
