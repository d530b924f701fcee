#pragma once

#include "opcode_table.hpp"

namespace coil::uring::detail {

/// Has flags of send(2) or recv(2) in `msg_flags`.
constexpr bool has_message_flags(opcode op) noexcept {
    return has_trait(op, opcode_info::message_flags);
}

/// Has a msghdr in `addr`.
constexpr bool has_message_header(opcode op) noexcept {
    return has_trait(op, opcode_info::message_header);
}

/// Moves bytes out of the caller's memory.
constexpr bool sends(opcode op) noexcept { return has_trait(op, opcode_info::moves_out); }

/// Works on the file of its descriptor: `fd` is not a number of another kind, or none, or where a
/// path begins.
constexpr bool has_file(opcode op) noexcept { return has_trait(op, opcode_info::takes_file); }

} // namespace coil::uring::detail
