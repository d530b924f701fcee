#pragma once

#include <coil/uring/abi.hpp>

namespace coil::detail {

/// Does what `request` asks for by the plain system call, for an opcode that the running kernel's
/// ring lacks. Only calls that do not wait for anybody: socket, bind, listen, shutdown, pipe,
/// ftruncate. −EOPNOTSUPP for every other.
int perform_directly(const uring::sqe& request) noexcept;

} // namespace coil::detail
