#pragma once

#include <coil/uring/prep_core.hpp>

#include <sys/socket.h>

// Builders for sockets. See prep_core.hpp for what all builders have in common. Lengths are limited
// to what one call can transfer (0x7ffff000 bytes), as in the system calls.

namespace coil::uring::prep {

namespace detail {

constexpr std::uint32_t io_length(std::size_t len) noexcept {
    constexpr std::size_t most = 0x7ffff000;
    return static_cast<std::uint32_t>(len < most ? len : most);
}

} // namespace detail

/// socket(2) (Linux 5.19).
constexpr sqe socket(int domain, int type, int protocol, unsigned flags = 0) noexcept {
    sqe s = detail::entry(opcode::socket, domain, 0, static_cast<std::uint32_t>(protocol),
                          static_cast<std::uint64_t>(static_cast<std::uint32_t>(type)));
    s.rw_flags = flags;
    return s;
}

/// Like socket, but into slot `index` of the ring's file table (file_index_alloc: the result is the
/// slot).
constexpr sqe socket_direct(int domain, int type, int protocol, std::uint32_t index,
                            unsigned flags = 0) noexcept {
    sqe s = prep::socket(domain, type, protocol, flags);
    s.file_index = detail::slot(index);
    return s;
}

/// bind(2) (Linux 6.11).
inline sqe bind(int fd, const ::sockaddr* addr, ::socklen_t len) noexcept {
    return detail::entry(opcode::bind, fd, detail::address(addr), 0, len);
}

/// listen(2) (Linux 6.11).
constexpr sqe listen(int fd, int backlog) noexcept {
    return detail::entry(opcode::listen, fd, 0, static_cast<std::uint32_t>(backlog));
}

/// accept4(2). `addr` and `len` (in: capacity, out: size) may be null; both must live until
/// completion.
inline sqe accept(int fd, ::sockaddr* addr, ::socklen_t* len, int flags) noexcept {
    sqe s = detail::entry(opcode::accept, fd, detail::address(addr), 0, detail::address(len));
    s.accept_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// Like accept, but into slot `index` of the ring's file table (or file_index_alloc).
inline sqe accept_direct(int fd, ::sockaddr* addr, ::socklen_t* len, int flags,
                         std::uint32_t index) noexcept {
    sqe s = prep::accept(fd, addr, len, flags);
    s.file_index = detail::slot(index);
    return s;
}

/// Posts a completion per connection, each but the last with cqe_flag::more (Linux 5.19).
inline sqe accept_multishot(int fd, int flags) noexcept {
    sqe s = prep::accept(fd, nullptr, nullptr, flags);
    s.ioprio = accept_flag::multishot;
    return s;
}

/// Like accept_multishot, but into free slots of the ring's file table; each result is a slot.
inline sqe accept_multishot_direct(int fd, int flags) noexcept {
    sqe s = prep::accept_multishot(fd, flags);
    s.file_index = file_index_alloc;
    return s;
}

inline sqe connect(int fd, const ::sockaddr* addr, ::socklen_t len) noexcept {
    return detail::entry(opcode::connect, fd, detail::address(addr), 0, len);
}

constexpr sqe shutdown(int fd, int how) noexcept {
    return detail::entry(opcode::shutdown, fd, 0, static_cast<std::uint32_t>(how));
}

// ---- sending. The data must live until completion. `flags` are send(2)'s MSG_*; with MSG_WAITALL
// the kernel continues after a short transfer. sqe::ioprio takes recvsend_flag::*.

inline sqe send(int fd, const void* buf, std::size_t len, int flags) noexcept {
    sqe s = detail::entry(opcode::send, fd, detail::address(buf), detail::io_length(len));
    s.msg_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// The address is read at submission (Linux 6.1; older kernels complete with -EINVAL).
inline sqe sendto(int fd, const void* buf, std::size_t len, int flags, const ::sockaddr* addr,
                  ::socklen_t addr_len) noexcept {
    sqe s = prep::send(fd, buf, len, flags);
    s.addr2 = detail::address(addr);
    s.addr_len = static_cast<std::uint16_t>(
        addr_len < 0xffff ? addr_len : 0xffff); // the kernel refuses 0xffff
    return s;
}

inline sqe sendmsg(int fd, const ::msghdr* msg, int flags) noexcept {
    sqe s = detail::entry(opcode::sendmsg, fd, detail::address(msg), 1);
    s.msg_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// Sends the available buffers of `group`, in order (Linux 6.10).
constexpr sqe send_bundle(int fd, int flags, unsigned group) noexcept {
    sqe s = detail::entry(opcode::send, fd);
    s.msg_flags = static_cast<std::uint32_t>(flags);
    s.ioprio = recvsend_flag::bundle;
    s.flags = sqe_flag::buffer_select;
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

/// Sends without a copy (Linux 6.0). The result comes with cqe_flag::more; a second completion,
/// with cqe_flag::notif, reports that the buffer may be reused. A failure may post only the first
/// completion, without cqe_flag::more.
inline sqe send_zc(int fd, const void* buf, std::size_t len, int flags,
                   std::uint16_t zc_flags = 0) noexcept {
    sqe s = detail::entry(opcode::send_zc, fd, detail::address(buf), detail::io_length(len));
    s.msg_flags = static_cast<std::uint32_t>(flags);
    s.ioprio = zc_flags;
    return s;
}

/// Like send_zc, but from the registered buffer `index`.
inline sqe send_zc_fixed(int fd, const void* buf, std::size_t len, int flags, unsigned index,
                         std::uint16_t zc_flags = 0) noexcept {
    sqe s = prep::send_zc(fd, buf, len, flags, zc_flags);
    s.ioprio = static_cast<std::uint16_t>(s.ioprio | recvsend_flag::fixed_buf);
    s.buf_index = static_cast<std::uint16_t>(index);
    return s;
}

/// Like send_zc, but for sendmsg (Linux 6.1).
inline sqe sendmsg_zc(int fd, const ::msghdr* msg, int flags, std::uint16_t zc_flags = 0) noexcept {
    sqe s = detail::entry(opcode::sendmsg_zc, fd, detail::address(msg), 1);
    s.msg_flags = static_cast<std::uint32_t>(flags);
    s.ioprio = zc_flags;
    return s;
}

// ---- receiving

inline sqe recv(int fd, void* buf, std::size_t len, int flags) noexcept {
    sqe s = detail::entry(opcode::recv, fd, detail::address(buf), detail::io_length(len));
    s.msg_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// The message header is updated by the kernel and must live until completion. For recvfrom(2), set
/// msg_name.
inline sqe recvmsg(int fd, ::msghdr* msg, int flags) noexcept {
    sqe s = detail::entry(opcode::recvmsg, fd, detail::address(msg), 1);
    s.msg_flags = static_cast<std::uint32_t>(flags);
    return s;
}

/// Receives repeatedly into buffers of `group`, one completion each, all but the last with
/// cqe_flag::more (Linux 6.0). `ioprio` may add recvsend_flag::bundle.
constexpr sqe recv_multishot(int fd, int flags, unsigned group) noexcept {
    sqe s = detail::entry(opcode::recv, fd);
    s.msg_flags = static_cast<std::uint32_t>(flags);
    s.ioprio = recvsend_flag::recv_multishot;
    s.flags = sqe_flag::buffer_select;
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

/// Like recv_multishot; each buffer starts with a recvmsg_out. Only msg_namelen and msg_controllen
/// of the header are used; it must live until the last completion.
inline sqe recvmsg_multishot(int fd, ::msghdr* msg, int flags, unsigned group) noexcept {
    sqe s = prep::recvmsg(fd, msg, flags);
    s.ioprio = recvsend_flag::recv_multishot;
    s.flags = sqe_flag::buffer_select;
    s.buf_group = static_cast<std::uint16_t>(group);
    return s;
}

/// Receives repeatedly from a TCP socket without a copy, into the area of the zero-copy receive
/// queue `queue` (zcrx_ifq_reg::zcrx_id), on a ring with 32-byte completions (Linux 6.15). Each
/// completion with cqe_flag::more names a piece of the area; the last one is 0 or -errno.
constexpr sqe recv_zc(int fd, std::uint32_t queue) noexcept {
    sqe s = detail::entry(opcode::recv_zc, fd);
    s.ioprio = recvsend_flag::recv_multishot;
    s.zcrx_ifq_idx = queue;
    return s;
}

// ---- options and names (Linux 6.7). The value must live until completion.

/// getsockopt(2); the result is the value's length.
inline sqe getsockopt(int fd, int level, int name, void* value, ::socklen_t len) noexcept {
    sqe s = prep::uring_cmd(fd, socket_command::getsockopt);
    s.sockopt = {static_cast<std::uint32_t>(level), static_cast<std::uint32_t>(name)};
    s.optval = detail::address(value);
    s.optlen = len;
    return s;
}

/// setsockopt(2).
inline sqe setsockopt(int fd, int level, int name, const void* value, ::socklen_t len) noexcept {
    sqe s = prep::uring_cmd(fd, socket_command::setsockopt);
    s.sockopt = {static_cast<std::uint32_t>(level), static_cast<std::uint32_t>(name)};
    s.optval = detail::address(value);
    s.optlen = len;
    return s;
}

/// getsockname(2), or getpeername(2) if `peer` (Linux 6.19). `*len` is the capacity on entry and
/// the length of the address on completion; both `addr` and `len` must live until completion.
inline sqe getsockname(int fd, ::sockaddr* addr, ::socklen_t* len, bool peer = false) noexcept {
    sqe s = uring_cmd(fd, socket_command::getsockname);
    s.addr = detail::address(addr);
    s.optval = detail::address(len);
    s.optlen = peer ? 1 : 0;
    return s;
}

} // namespace coil::uring::prep
