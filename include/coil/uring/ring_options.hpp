#pragma once

#include <coil/uring/abi.hpp>

#include <cstdint>

namespace coil::uring {

/// The setup flags that a ring requests by default. Linux 6.1 and newer grant all of them:
/// completions are posted only inside enter(), by the one thread that submits.
inline constexpr std::uint32_t default_setup_flags = setup::clamp | setup::submit_all |
                                                     setup::coop_taskrun | setup::taskrun_flag |
                                                     setup::single_issuer | setup::defer_taskrun;

/// The parameters of a ring.
///
///     ring r{{.entries = 256, .cq_entries = 4096}};
///
/// `setup_flags` are optional: while the kernel returns EINVAL they are dropped one by one, in this
/// order: hybrid_iopoll, defer_taskrun, single_issuer, taskrun_flag, coop_taskrun, submit_all,
/// attach_wq, sq_aff, sqpoll, iopoll, clamp. Conflicting flags are resolved beforehand: sqpoll
/// drops coop_taskrun, taskrun_flag and defer_taskrun; defer_taskrun needs single_issuer;
/// taskrun_flag needs coop_taskrun or defer_taskrun; sq_aff needs sqpoll. `required_flags` are
/// never dropped. ring::setup_flags() returns what was granted.
///
/// While the kernel returns ENOMEM (RLIMIT_MEMLOCK), both queues are halved, down to 8 submission
/// and 16 completion entries.
///
/// Not supported, because a ring uses entries of the standard sizes in kernel memory and the index
/// array: sqe128, cqe32, cqe_mixed, no_mmap, registered_fd_only, no_sqarray.
struct ring_options {
    unsigned entries = 256;  // submission queue; the kernel rounds up to a power of two
    unsigned cq_entries = 0; // completion queue; 0: twice the submission queue
    std::uint32_t setup_flags = default_setup_flags;
    std::uint32_t required_flags = 0;
    unsigned sq_thread_cpu = 0;  // for setup::sq_aff
    unsigned sq_thread_idle = 0; // setup::sqpoll: milliseconds until its thread sleeps; 0: 1000
    int wq_fd = -1;              // for setup::attach_wq: the ring to share workers with
    bool start_disabled = false; // nothing can be submitted until ring::enable()
};

} // namespace coil::uring
