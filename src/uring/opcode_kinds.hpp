#pragma once

#include "opcode_table.hpp"

namespace coil::uring::detail {

/// Whether `msg_flags` holds flags of send(2) or recv(2).
constexpr bool has_message_flags(opcode op) noexcept {
    return has_trait(op, opcode_info::message_flags);
}

/// Whether `addr` is a msghdr.
constexpr bool has_message_header(opcode op) noexcept {
    return has_trait(op, opcode_info::message_header);
}

/// Whether the operation transfers bytes out of the caller's memory.
constexpr bool sends(opcode op) noexcept { return has_trait(op, opcode_info::moves_out); }

/// Whether `fd` is the file that the operation works on, and not the directory of a path, another
/// kind of number, or unused.
constexpr bool has_file(opcode op) noexcept { return has_trait(op, opcode_info::takes_file); }

} // namespace coil::uring::detail
