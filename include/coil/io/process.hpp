#pragma once

#include <coil/context/operation.hpp>
#include <coil/uring/prep.hpp>

#include <sys/types.h>
#include <sys/wait.h>

// Child processes.

namespace coil::io {

/// waitid(2): 0 when a child that `idtype` and `id` name has changed state as `options` ask
/// (WEXITED, WSTOPPED, WCONTINUED; with WNOHANG at once, and with si_pid 0 when none has). `*info`,
/// which may be null, is the caller's memory and must outlive the await; it is also written when
/// the call fails, as by the system call.
///
/// Cancelled, it gives -ECANCELED and the child is still there to be waited for; or 0 when it had
/// changed state before. An await that is destroyed may have reaped the child nevertheless: where
/// that matters, ask with WNOWAIT and reap afterwards.
///
/// IORING_OP_WAITID (Linux 6.7). Older kernels: with WNOHANG the system call, at once; without,
/// -EOPNOTSUPP: there, await io::poll(pidfd, POLLIN) and then waitid with WNOHANG.
inline operation waitid(::idtype_t idtype, ::id_t id, ::siginfo_t* info, int options) noexcept {
    return detail::make_operation(uring::prep::waitid(idtype, id, info, options));
}

} // namespace coil::io
