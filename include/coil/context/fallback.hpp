#pragma once

#include <coil/uring/abi.hpp>

namespace coil::detail {

/// Does what `request` asks for by the plain system call, for an opcode that the running kernel's
/// ring lacks. Only calls that do not wait for anybody: sockets and their options, pipe, ftruncate,
/// names of files, extended attributes, epoll_ctl, futex_wake, waitid with WNOHANG. −EOPNOTSUPP for
/// every other, and on direct descriptors. The result is what the ring would have answered, so
/// getsockopt gives the option's length.
int perform_directly(const uring::sqe& request) noexcept;

/// Whether there is such a call.
bool can_perform_directly(const uring::sqe& request) noexcept;

} // namespace coil::detail
