#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/config.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/direct_element.hpp>
#include <coil/io/file.hpp>
#include <coil/io/path_argument.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>

// Direct descriptors: files known only to the context's ring (see io::direct_descriptor). The table
// has io_context_options::direct_descriptors slots and is created on first use. Other programs
// never inherit the files, so the functions set no O_CLOEXEC or SOCK_CLOEXEC (the kernel refuses
// them).
//
// `slot` selects one of the first 64 slots explicitly, for chains whose later calls use it
// (`socket_direct(..., 3) && connect(direct_descriptor{3}, ...)`). The previous file in the slot is
// closed. The new file stays open even if the chain fails, because the program knows the slot's
// number. By default the kernel chooses a free slot beyond the first 64.

namespace coil::io {

/// The awaitable of a direct call; co_await returns an io::direct_descriptor.
using direct_operation = io_awaitable<detail::direct_element>;

/// The kernel chooses the slot.
inline constexpr std::uint32_t any_slot = uring::file_index_alloc;

/// accept4(2) as a direct descriptor (IORING_OP_ACCEPT, Linux 5.19). -ENFILE: the table is full,
/// and the connection is lost.
inline direct_operation accept_direct(descriptor fd, ::sockaddr* address = nullptr,
                                      ::socklen_t* length = nullptr, int flags = 0,
                                      std::uint32_t slot = any_slot) noexcept {
    return direct_operation(detail::direct_element(
        detail::request_on(fd,
                           uring::prep::accept_direct(fd.number(), address, length, flags, slot)),
        slot));
}

/// openat(2) as a direct descriptor (IORING_OP_OPENAT, Linux 5.19). `path` must outlive the await.
inline direct_operation openat_direct(int dirfd, path_argument path COIL_LIFETIMEBOUND, int flags,
                                      ::mode_t mode = 0, std::uint32_t slot = any_slot) noexcept {
    return direct_operation(detail::direct_element(
        uring::prep::openat_direct(dirfd, path.c_str(), flags & ~O_CLOEXEC, mode, slot), slot));
}

/// socket(2) as a direct descriptor (IORING_OP_SOCKET, Linux 5.19).
inline direct_operation socket_direct(int domain, int type, int protocol = 0,
                                      std::uint32_t slot = any_slot) noexcept {
    return direct_operation(detail::direct_element(
        uring::prep::socket_direct(domain, type & ~SOCK_CLOEXEC, protocol, slot), slot));
}

/// close(2) of a direct descriptor (IORING_OP_CLOSE, Linux 5.15): 0, and its slot is free.
inline operation close_direct(direct_descriptor fd) noexcept { return close(fd); }

/// Creates a plain descriptor for the file of a direct one, which remains valid
/// (IORING_OP_FIXED_FD_INSTALL, Linux 6.8; before, -EOPNOTSUPP). The descriptor is closed if the
/// result is not received. Close-on-exec unless `flags` is uring::fixed_fd_flag::no_cloexec
/// (IORING_FIXED_FD_NO_CLOEXEC); -EINVAL for any other flag.
inline descriptor_operation fixed_fd_install(direct_descriptor fd, unsigned flags = 0) noexcept {
    return detail::make_descriptor_operation(
        detail::request_on(fd, uring::prep::fixed_fd_install(fd, flags)));
}

/// Creates a direct descriptor for the file of a plain one, which remains open
/// (IORING_OP_FILES_UPDATE, Linux 5.19). io_uring calls this a registered file.
inline io_awaitable<detail::register_file_element> register_file(int fd) noexcept {
    return io_awaitable<detail::register_file_element>(detail::register_file_element(fd));
}

} // namespace coil::io
