#pragma once

#include <cstddef>
#include <cstdint>

// The arguments of io_uring_setup(2) and io_uring_enter(2), and the words shared by both sides of a
// ring.

namespace coil::uring {

/// The kernel's time format (64-bit seconds on every machine).
struct timespec {
    std::int64_t tv_sec;
    std::int64_t tv_nsec;
};

/// Byte offsets of the submission ring's words from the start of its mapping.
struct sq_offsets {
    std::uint32_t head;
    std::uint32_t tail;
    std::uint32_t ring_mask;
    std::uint32_t ring_entries;
    std::uint32_t flags;
    std::uint32_t dropped;
    std::uint32_t array;
    std::uint32_t resv1;
    std::uint64_t user_addr;
};

/// Byte offsets of the completion ring's words from the start of its mapping.
struct cq_offsets {
    std::uint32_t head;
    std::uint32_t tail;
    std::uint32_t ring_mask;
    std::uint32_t ring_entries;
    std::uint32_t overflow;
    std::uint32_t cqes;
    std::uint32_t flags;
    std::uint32_t resv1;
    std::uint64_t user_addr;
};

/// Argument and result of io_uring_setup(2).
struct params {
    std::uint32_t sq_entries;
    std::uint32_t cq_entries;
    std::uint32_t flags; // setup::*
    std::uint32_t sq_thread_cpu;
    std::uint32_t sq_thread_idle; // milliseconds
    std::uint32_t features;       // out: feature::*
    std::uint32_t wq_fd;
    std::uint32_t resv[3];
    sq_offsets sq_off;
    cq_offsets cq_off;
};

static_assert(sizeof(timespec) == 16);
static_assert(sizeof(sq_offsets) == 40 && sizeof(cq_offsets) == 40 && sizeof(params) == 120);

/// io_uring_setup(2) flags. The comment names the first kernel.
namespace setup {
inline constexpr std::uint32_t iopoll = 1U << 0;              // 5.1: busy-poll the device
inline constexpr std::uint32_t sqpoll = 1U << 1;              // 5.1: a kernel thread submits
inline constexpr std::uint32_t sq_aff = 1U << 2;              // 5.1: use sq_thread_cpu
inline constexpr std::uint32_t cqsize = 1U << 3;              // 5.5: use cq_entries
inline constexpr std::uint32_t clamp = 1U << 4;               // 5.6: reduce excessive sizes
inline constexpr std::uint32_t attach_wq = 1U << 5;           // 5.6: share the workers of wq_fd
inline constexpr std::uint32_t r_disabled = 1U << 6;          // 5.10: start disabled
inline constexpr std::uint32_t submit_all = 1U << 7;          // 5.18: a bad entry does not stop the
                                                              // batch
inline constexpr std::uint32_t coop_taskrun = 1U << 8;        // 5.19: do not interrupt the thread
inline constexpr std::uint32_t taskrun_flag = 1U << 9;        // 5.19: report in sq_flag::taskrun
inline constexpr std::uint32_t sqe128 = 1U << 10;             // 5.19
inline constexpr std::uint32_t cqe32 = 1U << 11;              // 5.19
inline constexpr std::uint32_t single_issuer = 1U << 12;      // 6.0: one thread submits
inline constexpr std::uint32_t defer_taskrun = 1U << 13;      // 6.1: complete only inside enter
inline constexpr std::uint32_t no_mmap = 1U << 14;            // 6.5: the caller provides memory
inline constexpr std::uint32_t registered_fd_only = 1U << 15; // 6.5: no file descriptor
inline constexpr std::uint32_t no_sqarray = 1U << 16;         // 6.6: entries in slot order
inline constexpr std::uint32_t hybrid_iopoll = 1U << 17;      // 6.13: sleep first, then poll
inline constexpr std::uint32_t cqe_mixed = 1U << 18;          // 6.18: both completion sizes
} // namespace setup

/// `params::features`. The comment names the first kernel.
namespace feature {
inline constexpr std::uint32_t single_mmap = 1U << 0;      // 5.4
inline constexpr std::uint32_t nodrop = 1U << 1;           // 5.5: overflow is kept, not lost
inline constexpr std::uint32_t submit_stable = 1U << 2;    // 5.5: arguments are copied at submit
inline constexpr std::uint32_t rw_cur_pos = 1U << 3;       // 5.6: offset -1 = file position
inline constexpr std::uint32_t cur_personality = 1U << 4;  // 5.6
inline constexpr std::uint32_t fast_poll = 1U << 5;        // 5.7: sockets wait without a thread
inline constexpr std::uint32_t poll_32bits = 1U << 6;      // 5.9
inline constexpr std::uint32_t sqpoll_nonfixed = 1U << 7;  // 5.11
inline constexpr std::uint32_t ext_arg = 1U << 8;          // 5.11: enter takes a timeout
inline constexpr std::uint32_t native_workers = 1U << 9;   // 5.12
inline constexpr std::uint32_t rsrc_tags = 1U << 10;       // 5.13
inline constexpr std::uint32_t cqe_skip = 1U << 11;        // 5.17
inline constexpr std::uint32_t linked_file = 1U << 12;     // 5.17: a link can use a file it opened
inline constexpr std::uint32_t reg_reg_ring = 1U << 13;    // 6.3
inline constexpr std::uint32_t recvsend_bundle = 1U << 14; // 6.10
inline constexpr std::uint32_t min_timeout = 1U << 15;     // 6.12: enter takes min_wait_usec
inline constexpr std::uint32_t rw_attr = 1U << 16;         // 6.14
inline constexpr std::uint32_t no_iowait = 1U << 17;       // 6.15
} // namespace feature

/// io_uring_enter(2) flags.
namespace enter_flag {
inline constexpr std::uint32_t getevents = 1U << 0;       // post and wait for completions
inline constexpr std::uint32_t sq_wakeup = 1U << 1;       // wake the submission thread
inline constexpr std::uint32_t sq_wait = 1U << 2;         // wait for space in the SQ (sqpoll)
inline constexpr std::uint32_t ext_arg = 1U << 3;         // arg is a getevents_arg
inline constexpr std::uint32_t registered_ring = 1U << 4; // the ring is named by an index
inline constexpr std::uint32_t abs_timer = 1U << 5;       // the timeout is absolute
inline constexpr std::uint32_t ext_arg_reg = 1U << 6;     // arg is the offset of a reg_wait
inline constexpr std::uint32_t no_iowait = 1U << 7;       // waiting is not counted as iowait
} // namespace enter_flag

/// Bits of the submission ring's flags word, set by the kernel.
namespace sq_flag {
inline constexpr std::uint32_t need_wakeup = 1U << 0; // the submission thread is asleep
inline constexpr std::uint32_t cq_overflow = 1U << 1; // completions wait for space in the CQ
inline constexpr std::uint32_t taskrun = 1U << 2;     // completions need an enter
} // namespace sq_flag

/// Bits of the completion ring's flags word, set by the application.
namespace cq_flag {
inline constexpr std::uint32_t eventfd_disabled = 1U << 0;
} // namespace cq_flag

/// Offsets for mmap(2) on a ring's descriptor.
namespace mmap_offset {
inline constexpr std::uint64_t sq_ring = 0;
inline constexpr std::uint64_t cq_ring = 0x8000000;
inline constexpr std::uint64_t sqes = 0x10000000;
inline constexpr std::uint64_t pbuf_ring = 0x80000000;
inline constexpr unsigned pbuf_shift = 16; // pbuf_ring | group << pbuf_shift
} // namespace mmap_offset

/// io_uring_enter(2)'s argument with enter_flag::ext_arg.
struct getevents_arg {
    std::uint64_t sigmask;
    std::uint32_t sigmask_sz;
    std::uint32_t min_wait_usec; // feature::min_timeout, else must be 0
    std::uint64_t ts;            // address of a timespec, or 0
};
static_assert(sizeof(getevents_arg) == 24 && offsetof(getevents_arg, ts) == 16);

/// One record of a registered wait region, for enter_flag::ext_arg_reg.
struct reg_wait {
    timespec ts;
    std::uint32_t min_wait_usec;
    std::uint32_t flags; // reg_wait_flag::*
    std::uint64_t sigmask;
    std::uint32_t sigmask_sz;
    std::uint32_t pad[3];
    std::uint64_t pad2[2];
};
static_assert(sizeof(reg_wait) == 64);

namespace reg_wait_flag {
inline constexpr std::uint32_t ts = 1U << 0; // use reg_wait::ts
} // namespace reg_wait_flag

} // namespace coil::uring
