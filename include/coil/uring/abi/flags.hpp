#pragma once

#include <cstdint>

// Flags that single operations take in their submission entry.

namespace coil::uring {

/// `sqe::fsync_flags`.
namespace fsync_flag {
inline constexpr std::uint32_t datasync = 1U << 0;
} // namespace fsync_flag

/// `sqe::timeout_flags`. Without a clock flag the clock is CLOCK_MONOTONIC.
namespace timeout_flag {
inline constexpr std::uint32_t abs = 1U << 0;
inline constexpr std::uint32_t update = 1U << 1;        // timeout_remove: change, do not remove
inline constexpr std::uint32_t boottime = 1U << 2;      // 5.15
inline constexpr std::uint32_t realtime = 1U << 3;      // 5.15
inline constexpr std::uint32_t link_update = 1U << 4;   // timeout_remove: it is a link timeout
inline constexpr std::uint32_t etime_success = 1U << 5; // 5.16: expiry does not break a link
inline constexpr std::uint32_t multishot = 1U << 6;     // 6.4: off = count, 0 = no limit
} // namespace timeout_flag

/// `sqe::splice_flags`, beside splice(2)'s own.
namespace splice_flag {
inline constexpr std::uint32_t fd_in_fixed = 1U << 31; // splice_fd_in is an index
} // namespace splice_flag

/// poll_add and poll_remove, in `sqe::len` (the flags word is the event mask).
namespace poll_flag {
inline constexpr std::uint32_t add_multi = 1U << 0;        // 5.13
inline constexpr std::uint32_t update_events = 1U << 1;    // 5.13
inline constexpr std::uint32_t update_user_data = 1U << 2; // 5.13
inline constexpr std::uint32_t add_level = 1U << 3;        // 6.0
} // namespace poll_flag

/// `sqe::cancel_flags`: which requests async_cancel cancels; by default one, matched by user_data.
namespace cancel_flag {
inline constexpr std::uint32_t all = 1U << 0;      // 5.19: every match; result = number
inline constexpr std::uint32_t fd = 1U << 1;       // 5.19
inline constexpr std::uint32_t any = 1U << 2;      // 5.19: every request of the ring
inline constexpr std::uint32_t fd_fixed = 1U << 3; // 6.0
inline constexpr std::uint32_t userdata = 1U << 4; // 6.6: compare user_data too
inline constexpr std::uint32_t op = 1U << 5;       // 6.6
} // namespace cancel_flag

/// send, recv and their relatives, in `sqe::ioprio`.
namespace recvsend_flag {
inline constexpr std::uint16_t poll_first = 1U << 0;      // 5.19: wait before the first try
inline constexpr std::uint16_t recv_multishot = 1U << 1;  // 6.0
inline constexpr std::uint16_t fixed_buf = 1U << 2;       // 6.0: buf_index names the buffer
inline constexpr std::uint16_t zc_report_usage = 1U << 3; // 6.2: the notification reports copies
inline constexpr std::uint16_t bundle = 1U << 4;          // 6.10: several buffers per result
inline constexpr std::uint16_t send_vectorized = 1U << 5; // 6.17: addr is an iovec array
} // namespace recvsend_flag

/// `cqe::res` of a zero-copy notification with recvsend_flag::zc_report_usage: the data was copied.
inline constexpr std::uint32_t notif_usage_zc_copied = 1U << 31;

/// accept, in `sqe::ioprio`.
namespace accept_flag {
inline constexpr std::uint16_t multishot = 1U << 0;  // 5.19
inline constexpr std::uint16_t dontwait = 1U << 1;   // 6.10
inline constexpr std::uint16_t poll_first = 1U << 2; // 6.10
} // namespace accept_flag

/// msg_ring: what is sent, in `sqe::addr`.
namespace msg_ring_command {
inline constexpr std::uint64_t data = 0;
inline constexpr std::uint64_t send_fd = 1; // 6.0
} // namespace msg_ring_command

/// `sqe::msg_ring_flags`.
namespace msg_ring_flag {
inline constexpr std::uint32_t cqe_skip = 1U << 0;   // 6.0: the target gets no completion
inline constexpr std::uint32_t flags_pass = 1U << 1; // 6.3: file_index becomes cqe::flags
} // namespace msg_ring_flag

/// `sqe::install_fd_flags`.
namespace fixed_fd_flag {
inline constexpr std::uint32_t no_cloexec = 1U << 0;
} // namespace fixed_fd_flag

/// `sqe::nop_flags`.
namespace nop_flag {
inline constexpr std::uint32_t inject_result = 1U << 0; // 6.10: the result is sqe::len
inline constexpr std::uint32_t file = 1U << 1;          // 6.13
inline constexpr std::uint32_t fixed_file = 1U << 2;    // 6.13
inline constexpr std::uint32_t fixed_buffer = 1U << 3;  // 6.13
inline constexpr std::uint32_t tw = 1U << 4;            // 6.16: complete by task work
inline constexpr std::uint32_t cqe32 = 1U << 5;         // 6.18
} // namespace nop_flag

/// `sqe::uring_cmd_flags`.
namespace uring_cmd_flag {
inline constexpr std::uint32_t fixed = 1U << 0;
inline constexpr std::uint32_t multishot = 1U << 1; // 6.18
} // namespace uring_cmd_flag

/// `sqe::attr_type_mask` of reads and writes.
namespace rw_attr_flag {
inline constexpr std::uint64_t pi = 1U << 0;
} // namespace rw_attr_flag

/// `sqe::cmd_op` of uring_cmd on a socket.
namespace socket_command {
inline constexpr std::uint32_t siocinq = 0;
inline constexpr std::uint32_t siocoutq = 1;
inline constexpr std::uint32_t getsockopt = 2;   // 6.7
inline constexpr std::uint32_t setsockopt = 3;   // 6.7
inline constexpr std::uint32_t tx_timestamp = 4; // 6.17
inline constexpr std::uint32_t getsockname = 5;  // 6.19; getpeername as well
} // namespace socket_command

/// futex_wait, futex_wake (in `sqe::fd`) and futex_waiter::flags: width and scope of the word.
namespace futex_flag {
inline constexpr std::uint32_t size_u8 = 0x00;
inline constexpr std::uint32_t size_u16 = 0x01;
inline constexpr std::uint32_t size_u32 = 0x02;
inline constexpr std::uint32_t size_u64 = 0x03;
inline constexpr std::uint32_t numa = 0x04;
inline constexpr std::uint32_t private_ = 128; // one process only
} // namespace futex_flag

/// futex_wait and futex_wake: match every waiter.
inline constexpr std::uint64_t futex_match_any = 0xffffffff;

/// One word of a futex_waitv.
struct futex_waiter {
    std::uint64_t val;
    std::uint64_t uaddr;
    std::uint32_t flags; // futex_flag::*
    std::uint32_t reserved;
};
static_assert(sizeof(futex_waiter) == 24);

/// The header before name, control data and payload in the provided buffer of a multishot recvmsg.
struct recvmsg_out {
    std::uint32_t namelen;
    std::uint32_t controllen;
    std::uint32_t payloadlen;
    std::uint32_t flags;
};
static_assert(sizeof(recvmsg_out) == 16);

/// Integrity attributes of a read or write (`sqe::attr_ptr`).
struct attr_pi {
    std::uint16_t flags;
    std::uint16_t app_tag;
    std::uint32_t len;
    std::uint64_t addr;
    std::uint64_t seed;
    std::uint64_t rsvd;
};
static_assert(sizeof(attr_pi) == 32);

} // namespace coil::uring
