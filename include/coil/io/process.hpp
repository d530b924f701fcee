#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

#include <sys/types.h>
#include <sys/wait.h>

// Child processes.

namespace coil::io {

/// waitid(2): 0 when a child selected by `idtype` and `id` has changed state as `options` request
/// (WEXITED, WSTOPPED, WCONTINUED). With WNOHANG it does not wait, and sets si_pid to 0 if no such
/// child has changed state. `info` may be null; otherwise `*info` must outlive the await. As with
/// the system call, it is also written when the call fails.
///
/// When cancelled it returns -ECANCELED, and the child can still be waited for; or 0 if the child
/// had already changed state. A destroyed await may have reaped the child; if that matters, use
/// WNOWAIT and reap afterwards.
///
/// IORING_OP_WAITID (Linux 6.7). On older kernels, waitid with WNOHANG makes the system call
/// immediately; without WNOHANG it returns -EOPNOTSUPP. There, await io::poll(pidfd, POLLIN), and
/// then waitid with WNOHANG.
inline operation waitid(::idtype_t idtype, ::id_t id, ::siginfo_t* info, int options) noexcept {
    return detail::make_operation(uring::prep::waitid(idtype, id, info, options));
}

} // namespace coil::io
