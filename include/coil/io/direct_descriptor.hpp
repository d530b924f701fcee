#pragma once

#include <coil/context/detail/ring_tables.hpp>
#include <coil/core/io_result.hpp>

#include <cstdint>

namespace coil::io {

/// A direct descriptor: a file known only to this context's ring, by its slot in the ring's file
/// table. It is the result of accept_direct, openat_direct, socket_direct and register_file: an
/// io_result (a slot ≥ 0, or -errno) that every call of coil::io accepts as a descriptor.
///
///     auto peer = co_await io::accept_direct(listener);
///     if (peer >= 0) {
///         int n = co_await io::recv(peer, buf);
///         co_await io::close(peer);
///     }
///
/// Each call on it saves the kernel a descriptor look-up and a reference count. It is valid only on
/// the context that created it, during the same run: it stores the identity of its table, and
/// awaiting a call on it elsewhere returns -EBADF. A direct descriptor constructed from a number,
/// direct_descriptor{3}, refers to the table of the context on which it is used. It does not own
/// the file: close it with io::close or io::close_direct. Files still open are closed with the
/// ring.
class direct_descriptor : public io_result {
public:
    constexpr direct_descriptor() noexcept : io_result(-1) {}
    constexpr explicit direct_descriptor(int slot) noexcept : io_result(slot) {}
    /// For internal use: a slot of the table with this number, see ring_tables::files_number().
    constexpr direct_descriptor(int slot, std::uint32_t table) noexcept
        : io_result(slot), table_(table) {}

private:
    friend class descriptor;

    std::uint32_t table_ = detail::ring_tables::any_files;
};

} // namespace coil::io
