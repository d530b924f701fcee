#pragma once

#include <coil/uring/abi/opcode.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// The two records that cross the rings.

namespace coil::uring {

/// The option that uring_cmd reads or writes on a socket.
struct sockopt_name {
    std::uint32_t level;
    std::uint32_t optname;
};

/// A submission queue entry: 64 bytes, laid out as the kernel reads them. The unions carry the
/// kernel's own field names. `sqe{}` is all zero bytes. Every field an operation does not use must
/// stay zero, or newer kernels complete with -EINVAL.
struct sqe {
    std::uint8_t opcode;
    std::uint8_t flags; // sqe_flag::*
    std::uint16_t ioprio;
    std::int32_t fd;
    union {
        std::uint64_t off;
        std::uint64_t addr2;
        std::uint32_t cmd_op;
    };
    union {
        std::uint64_t addr;
        std::uint64_t splice_off_in;
        sockopt_name sockopt; // the kernel's level and optname
    };
    std::uint32_t len;
    union {
        std::uint32_t rw_flags;
        std::uint32_t fsync_flags;
        std::uint16_t poll_events;
        std::uint32_t poll32_events; // half-words swapped on big-endian machines
        std::uint32_t sync_range_flags;
        std::uint32_t msg_flags;
        std::uint32_t timeout_flags;
        std::uint32_t accept_flags;
        std::uint32_t cancel_flags;
        std::uint32_t open_flags;
        std::uint32_t statx_flags;
        std::uint32_t fadvise_advice;
        std::uint32_t splice_flags;
        std::uint32_t rename_flags;
        std::uint32_t unlink_flags;
        std::uint32_t hardlink_flags;
        std::uint32_t xattr_flags;
        std::uint32_t msg_ring_flags;
        std::uint32_t uring_cmd_flags;
        std::uint32_t waitid_flags;
        std::uint32_t futex_flags;
        std::uint32_t install_fd_flags;
        std::uint32_t nop_flags;
        std::uint32_t pipe_flags;
    };
    std::uint64_t user_data; // returned in cqe::user_data
    union {
        std::uint16_t buf_index;
        std::uint16_t buf_group;
    };
    std::uint16_t personality;
    union {
        std::int32_t splice_fd_in;
        std::uint32_t file_index;
        std::uint32_t zcrx_ifq_idx;
        std::uint32_t optlen;
        std::uint16_t addr_len;
        std::uint8_t write_stream;
    };
    union {
        std::uint64_t addr3;
        std::uint64_t attr_ptr;
        std::uint64_t optval;
    };
    union {
        std::uint64_t pad2;
        std::uint64_t attr_type_mask;
    };
};

/// A completion queue entry. `res` is what the system call of the same name would return, errors as
/// -errno. `flags` holds cqe_flag::* and, with cqe_flag::buffer, a buffer id from bit 16 on.
struct cqe {
    std::uint64_t user_data;
    std::int32_t res;
    std::uint32_t flags;
};

static_assert(sizeof(sqe) == 64 && alignof(sqe) == 8);
static_assert(offsetof(sqe, fd) == 4 && offsetof(sqe, off) == 8 && offsetof(sqe, addr) == 16);
static_assert(sizeof(sockopt_name) == 8 && offsetof(sqe, sockopt) == 16);
static_assert(offsetof(sqe, len) == 24 && offsetof(sqe, rw_flags) == 28);
static_assert(offsetof(sqe, user_data) == 32 && offsetof(sqe, buf_index) == 40);
static_assert(offsetof(sqe, personality) == 42 && offsetof(sqe, splice_fd_in) == 44);
static_assert(offsetof(sqe, addr3) == 48 && offsetof(sqe, attr_type_mask) == 56);
static_assert(std::is_trivially_copyable_v<sqe> && std::is_aggregate_v<sqe>);
static_assert(sizeof(cqe) == 16 && offsetof(cqe, res) == 8 && offsetof(cqe, flags) == 12);

/// Bits of `sqe::flags`.
namespace sqe_flag {
inline constexpr std::uint8_t fixed_file = 1U << 0;       // fd is an index of the file table
inline constexpr std::uint8_t io_drain = 1U << 1;         // start after all earlier ones completed
inline constexpr std::uint8_t io_link = 1U << 2;          // next entry waits; a failure cancels it
inline constexpr std::uint8_t io_hardlink = 1U << 3;      // next entry waits and starts in any case
inline constexpr std::uint8_t async = 1U << 4;            // execute on a worker immediately
inline constexpr std::uint8_t buffer_select = 1U << 5;    // take a buffer of buf_group
inline constexpr std::uint8_t cqe_skip_success = 1U << 6; // no completion on success
} // namespace sqe_flag

/// Bits of `cqe::flags`.
namespace cqe_flag {
inline constexpr std::uint32_t buffer = 1U << 0;        // a provided buffer was used: see buffer_id
inline constexpr std::uint32_t more = 1U << 1;          // more completions of this entry follow
inline constexpr std::uint32_t sock_nonempty = 1U << 2; // the socket has more to read
inline constexpr std::uint32_t notif = 1U << 3;         // zero-copy send: the buffer may be reused
inline constexpr std::uint32_t buf_more = 1U << 4;      // the buffer is only partly consumed
inline constexpr std::uint32_t skip = 1U << 5;          // padding without content
inline constexpr std::uint32_t tstamp_hw = 1U << 16;    // tx timestamp taken by hardware
inline constexpr std::uint32_t cqe_32 = 1U << 15;       // a 32-byte completion of a mixed ring
inline constexpr unsigned buffer_shift = 16;
} // namespace cqe_flag

/// The id of the provided buffer that a completion used; only with cqe_flag::buffer.
constexpr std::uint16_t buffer_id(const cqe& c) noexcept {
    return static_cast<std::uint16_t>(c.flags >> cqe_flag::buffer_shift);
}

/// Whether a completion used a provided buffer.
constexpr bool has_buffer(const cqe& c) noexcept { return (c.flags & cqe_flag::buffer) != 0; }

/// Whether the kernel keeps that buffer and fills the rest of it next (incremental buffer rings,
/// Linux 6.12).
constexpr bool has_more_buffer(const cqe& c) noexcept {
    return (c.flags & cqe_flag::buf_more) != 0;
}

/// Whether more completions of the same entry follow.
constexpr bool has_more(const cqe& c) noexcept { return (c.flags & cqe_flag::more) != 0; }

/// `sqe::file_index` for operations that create a direct descriptor: the kernel chooses the slot.
inline constexpr std::uint32_t file_index_alloc = ~0U;

} // namespace coil::uring
