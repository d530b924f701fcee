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

} // namespace coil::uring::detail
