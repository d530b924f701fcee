#pragma once

#include <cstddef>

#include <sys/uio.h>
#include <unistd.h>

namespace coil::detail {

/// Copies memory of which less than `size` bytes may be mapped, and to which other threads may be
/// writing. The kernel copies it and reports memory that is not mapped. Returns the number of bytes
/// copied. May be called by a signal handler.
inline std::size_t copy_memory(const void* from, void* to, std::size_t size) noexcept {
    ::iovec local{to, size};
    ::iovec remote{const_cast<void*>(from), size};
    const auto copied = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

} // namespace coil::detail
