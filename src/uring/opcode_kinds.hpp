#pragma once

#include <coil/uring/abi.hpp>

namespace coil::uring::detail {

/// Has flags of send(2) or recv(2) in `msg_flags`.
constexpr bool has_message_flags(opcode op) noexcept {
    return op == opcode::send || op == opcode::sendmsg || op == opcode::send_zc ||
           op == opcode::sendmsg_zc || op == opcode::recv || op == opcode::recvmsg;
}

/// Has a msghdr in `addr`.
constexpr bool has_message_header(opcode op) noexcept {
    return op == opcode::sendmsg || op == opcode::recvmsg || op == opcode::sendmsg_zc;
}

/// Moves bytes out of the caller's memory.
constexpr bool sends(opcode op) noexcept {
    return op == opcode::write || op == opcode::writev || op == opcode::write_fixed ||
           op == opcode::writev_fixed || op == opcode::send || op == opcode::sendmsg ||
           op == opcode::send_zc || op == opcode::sendmsg_zc;
}

/// Works on the file of its descriptor: `fd` is not a number of another kind, or none, or where a
/// path begins.
constexpr bool has_file(opcode op) noexcept {
    switch (op) {
    case opcode::nop:
    case opcode::timeout:
    case opcode::timeout_remove:
    case opcode::link_timeout:
    case opcode::async_cancel:
    case opcode::poll_remove:
    case opcode::files_update:
    case opcode::provide_buffers:
    case opcode::remove_buffers:
    case opcode::openat:
    case opcode::openat2:
    case opcode::close:
    case opcode::statx:
    case opcode::madvise:
    case opcode::renameat:
    case opcode::unlinkat:
    case opcode::mkdirat:
    case opcode::symlinkat:
    case opcode::linkat:
    case opcode::getxattr:
    case opcode::setxattr:
    case opcode::socket:
    case opcode::pipe:
    case opcode::epoll_ctl:
    case opcode::waitid:
    case opcode::futex_wait:
    case opcode::futex_wake:
    case opcode::futex_waitv:
        return false;
    default:
        return true;
    }
}

} // namespace coil::uring::detail
