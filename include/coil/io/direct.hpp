#pragma once

#include <coil/context/operation.hpp>
#include <coil/core/config.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/file.hpp>
#include <coil/io/path_argument.hpp>
#include <coil/uring/prep.hpp>

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>

// Direct descriptors: files that only the context's ring knows (see io::direct_descriptor). The
// table has room for io_context_options::direct_descriptors of them; it is made at the first use.
// They are never inherited by other programs, so O_CLOEXEC and SOCK_CLOEXEC are left out (the
// kernel refuses them).
//
// `slot`: where the descriptor is to be, one of the first 64, for a chain whose later calls use it
// (`socket_direct(..., 3) && connect(direct_descriptor{3}, ...)`); what is there before is closed,
// and what is put there stays when the chain has ended, however: the program knows its number. By
// default the kernel takes a free one of the others.

namespace coil {

namespace detail {

/// A call that puts a file into the table, which is made at the first one.
class table_element : public io_element {
public:
    static constexpr bool needs_result = true;

    using io_element::io_element;

    ring_entry& arm() noexcept {
        event_loop& loop = required_loop();
        table_error_ = loop.use_direct_descriptors();
        table_ = loop.direct_table();
        return entry_;
    }

protected:
    /// What there is instead of a slot: why there is no table, or what the call said.
    [[nodiscard]] io::direct_descriptor failure() const noexcept {
        const bool no_table = table_error_ < 0 && entry_.result != -ECANCELED;
        return io::direct_descriptor(no_table ? table_error_ : entry_.result);
    }
    [[nodiscard]] io::direct_descriptor descriptor_of(int slot) const noexcept {
        return {slot, table_};
    }
    /// Unless its table is gone, and the file with it.
    void close_slot(int slot) const noexcept;

private:
    int table_error_ = 0;
    std::uint32_t table_ = 0;
};

/// A call whose result is a direct descriptor: one that nobody receives is closed (guarantee G4),
/// except in the middle of a chain when the program has chosen its slot: later calls know it.
class direct_element : public table_element {
public:
    direct_element(const uring::sqe& request, std::uint32_t slot) noexcept
        : table_element(request), slot_(slot) {}

    [[nodiscard]] io::direct_descriptor result() const noexcept {
        return entry_.result < 0 ? failure() : descriptor_of(slot());
    }
    void drop() const noexcept {
        if (entry_.completed && entry_.result >= 0) {
            close_slot(slot());
        }
    }
    void leave_behind() const noexcept {
        if (slot_ == uring::file_index_alloc) {
            drop();
        }
    }

private:
    [[nodiscard]] int slot() const noexcept {
        return slot_ == uring::file_index_alloc ? entry_.result : static_cast<int>(slot_);
    }

    std::uint32_t slot_;
};

/// A plain descriptor's file, put into the table.
class register_file_element : public table_element {
public:
    explicit register_file_element(int fd) noexcept
        : table_element(uring::prep::files_update(nullptr, 1, uring::file_index_alloc)), slot_(fd) {
    }

    ring_entry& arm() noexcept {
        entry_.request.addr = reinterpret_cast<std::uintptr_t>(&slot_);
        return table_element::arm();
    }
    [[nodiscard]] io::direct_descriptor result() const noexcept {
        return entry_.result != 1 ? failure() : descriptor_of(slot_);
    }
    void drop() const noexcept {
        if (entry_.completed && entry_.result == 1) {
            close_slot(slot_);
        }
    }

private:
    int slot_; // the descriptor, and then where it is
};

} // namespace detail

namespace io {

/// What a direct call gives when it is awaited: an io::direct_descriptor.
using direct_operation = io_awaitable<detail::direct_element>;

/// Lets the kernel choose the slot.
inline constexpr std::uint32_t any_slot = uring::file_index_alloc;

/// accept4(2) as a direct descriptor (IORING_OP_ACCEPT, Linux 5.19). −ENFILE: the table is full,
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

/// A plain descriptor for a direct one's file, which stays direct as well
/// (IORING_OP_FIXED_FD_INSTALL, Linux 6.8; before, -EOPNOTSUPP): closed if nobody receives it.
/// Close-on-exec, unless `flags` is uring::fixed_fd_flag::no_cloexec
/// (IORING_FIXED_FD_NO_CLOEXEC); -EINVAL for any other.
inline descriptor_operation fixed_fd_install(direct_descriptor fd, unsigned flags = 0) noexcept {
    return detail::make_descriptor_operation(
        detail::request_on(fd, uring::prep::fixed_fd_install(fd, flags)));
}

/// A direct descriptor for a plain one's file, which stays open as well (IORING_OP_FILES_UPDATE,
/// Linux 5.19): registered files by another name.
inline io_awaitable<detail::register_file_element> register_file(int fd) noexcept {
    return io_awaitable<detail::register_file_element>(detail::register_file_element(fd));
}

} // namespace io

} // namespace coil
