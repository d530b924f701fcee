#pragma once

#include <coil/uring/abi/setup.hpp>
#include <coil/uring/abi/sqe.hpp>

#include <cstddef>
#include <cstdint>

// io_uring_register(2): its operations and their arguments.

namespace coil::uring {

/// The operations of io_uring_register(2). Each comment names the first kernel.
enum class register_op : std::uint32_t {
    buffers = 0,                 // 5.1
    unregister_buffers = 1,      // 5.1
    files = 2,                   // 5.1
    unregister_files = 3,        // 5.1
    eventfd = 4,                 // 5.2
    unregister_eventfd = 5,      // 5.2
    files_update = 6,            // 5.5
    eventfd_async = 7,           // 5.6
    probe = 8,                   // 5.6
    personality = 9,             // 5.6
    unregister_personality = 10, // 5.6
    restrictions = 11,           // 5.10
    enable_rings = 12,           // 5.10
    files2 = 13,                 // 5.13
    files_update2 = 14,          // 5.13
    buffers2 = 15,               // 5.13
    buffers_update = 16,         // 5.13
    iowq_aff = 17,               // 5.14
    unregister_iowq_aff = 18,    // 5.14
    iowq_max_workers = 19,       // 5.15
    ring_fds = 20,               // 5.18
    unregister_ring_fds = 21,    // 5.18
    pbuf_ring = 22,              // 5.19
    unregister_pbuf_ring = 23,   // 5.19
    sync_cancel = 24,            // 6.0
    file_alloc_range = 25,       // 6.0
    pbuf_status = 26,            // 6.8
    napi = 27,                   // 6.9
    unregister_napi = 28,        // 6.9
    clock = 29,                  // 6.12
    clone_buffers = 30,          // 6.12
    send_msg_ring = 31,          // 6.13
    zcrx_ifq = 32,               // 6.15
    resize_rings = 33,           // 6.13
    mem_region = 34,             // 6.13
    query = 35,                  // 6.18, see query.hpp
};

/// Added to the operation's number if the ring is named by its registered index.
inline constexpr std::uint32_t register_use_registered_ring = 1U << 31;

/// The offset of a rsrc_update for register_op::ring_fds with which the kernel chooses the slot.
inline constexpr std::uint32_t ring_fd_any_slot = ~0U;

/// Argument of register_op::files_update; `count` is the number of descriptors.
struct files_update {
    std::uint32_t offset;
    std::uint32_t resv;
    std::uint64_t fds; // address of int[]
};

/// Argument of register_op::files2 and buffers2; `count` is the size of this struct.
struct rsrc_register {
    std::uint32_t nr;
    std::uint32_t flags; // rsrc_flag::*
    std::uint64_t resv2;
    std::uint64_t data; // address of int[] or iovec[]
    std::uint64_t tags; // address of uint64_t[], or 0
};

namespace rsrc_flag {
inline constexpr std::uint32_t sparse = 1U << 0; // 5.19: nr empty slots
} // namespace rsrc_flag

struct rsrc_update {
    std::uint32_t offset;
    std::uint32_t resv;
    std::uint64_t data;
};

/// Argument of register_op::files_update2 and buffers_update; `count` is the size of this struct.
struct rsrc_update2 {
    std::uint32_t offset;
    std::uint32_t resv;
    std::uint64_t data;
    std::uint64_t tags;
    std::uint32_t nr;
    std::uint32_t resv2;
};

/// A descriptor value that leaves its slot of the file table unchanged.
inline constexpr std::int32_t files_skip = -2;

struct probe_op {
    std::uint8_t op;
    std::uint8_t resv;
    std::uint16_t flags; // op_supported
    std::uint32_t resv2;
};

inline constexpr std::uint16_t op_supported = 1U << 0;

/// The result of register_op::probe, with an element for every possible opcode.
struct probe {
    std::uint8_t last_op;
    std::uint8_t ops_len; // the number of ops[] that the kernel filled
    std::uint16_t resv;
    std::uint32_t resv2[3];
    probe_op ops[256];
};
static_assert(sizeof(probe_op) == 8 && offsetof(probe, ops) == 16);

struct restriction {
    std::uint16_t opcode; // restriction_op::*
    union {
        std::uint8_t register_op;
        std::uint8_t sqe_op;
        std::uint8_t sqe_flags;
    };
    std::uint8_t resv;
    std::uint32_t resv2[3];
};

namespace restriction_op {
inline constexpr std::uint16_t register_op = 0;
inline constexpr std::uint16_t sqe_op = 1;
inline constexpr std::uint16_t sqe_flags_allowed = 2;
inline constexpr std::uint16_t sqe_flags_required = 3;
} // namespace restriction_op

struct clock_register {
    std::uint32_t clockid;
    std::uint32_t resv[3];
};

struct clone_buffers {
    std::uint32_t src_fd;
    std::uint32_t flags; // clone_flag::*
    std::uint32_t src_off;
    std::uint32_t dst_off;
    std::uint32_t nr;
    std::uint32_t pad[3];
};

namespace clone_flag {
inline constexpr std::uint32_t src_registered = 1U << 0;
inline constexpr std::uint32_t dst_replace = 1U << 1;
} // namespace clone_flag

/// One buffer of a provided-buffer ring. The `resv` of the ring's first entry is the ring's tail.
struct buf {
    std::uint64_t addr;
    std::uint32_t len;
    std::uint16_t bid;
    std::uint16_t resv;
};

/// The head of a provided-buffer ring: its tail overlays buf[0].resv, and the buffers start at the
/// same address (`bufs()`).
struct buf_ring {
    std::uint64_t resv1;
    std::uint32_t resv2;
    std::uint16_t resv3;
    std::uint16_t tail;

    buf* bufs() noexcept { return reinterpret_cast<buf*>(this); }
};
static_assert(sizeof(buf) == 16 && sizeof(buf_ring) == 16);
static_assert(offsetof(buf, resv) == offsetof(buf_ring, tail));

/// Argument of register_op::pbuf_ring and unregister_pbuf_ring (which reads only bgid); `count` is
/// 1.
struct buf_reg {
    std::uint64_t ring_addr;
    std::uint32_t ring_entries;
    std::uint16_t bgid;
    std::uint16_t flags; // pbuf_ring_flag::*
    std::uint64_t resv[3];
};

namespace pbuf_ring_flag {
inline constexpr std::uint16_t mmap = 1U << 0; // 6.4: the kernel allocates, see mmap_offset
inline constexpr std::uint16_t inc = 1U << 1;  // 6.12: buffers are consumed piecemeal
} // namespace pbuf_ring_flag

/// Argument of register_op::pbuf_status; `count` is 1.
struct buf_status {
    std::uint32_t buf_group; // in
    std::uint32_t head;      // out
    std::uint32_t resv[8];
};

struct napi {
    std::uint32_t busy_poll_to; // microseconds
    std::uint8_t prefer_busy_poll;
    std::uint8_t opcode; // napi_op::*
    std::uint8_t pad[2];
    std::uint32_t op_param; // napi_tracking::*, or a napi id
    std::uint32_t resv;
};

namespace napi_op {
inline constexpr std::uint8_t register_ = 0;
inline constexpr std::uint8_t static_add_id = 1;
inline constexpr std::uint8_t static_del_id = 2;
} // namespace napi_op

namespace napi_tracking {
inline constexpr std::uint32_t dynamic = 0;
inline constexpr std::uint32_t static_ = 1;
inline constexpr std::uint32_t inactive = 255;
} // namespace napi_tracking

struct sync_cancel_reg {
    std::uint64_t addr; // user_data
    std::int32_t fd;
    std::uint32_t flags; // cancel_flag::*
    timespec timeout;    // -1, -1: none
    std::uint8_t opcode;
    std::uint8_t pad[7];
    std::uint64_t pad2[3];
};

/// Argument of register_op::file_alloc_range; `count` is 0.
struct file_index_range {
    std::uint32_t off;
    std::uint32_t len;
    std::uint64_t resv;
};

struct region_desc {
    std::uint64_t user_addr;
    std::uint64_t size;
    std::uint32_t flags; // region_flag::*
    std::uint32_t id;
    std::uint64_t mmap_offset;
    std::uint64_t resv[4];
};

namespace region_flag {
inline constexpr std::uint32_t user_memory = 1;
} // namespace region_flag

struct mem_region_reg {
    std::uint64_t region_uptr; // address of a region_desc
    std::uint64_t flags;       // mem_region_flag::*
    std::uint64_t resv[2];
};

namespace mem_region_flag {
inline constexpr std::uint64_t reg_wait_arg = 1;
} // namespace mem_region_flag

/// Indices of the pair that register_op::iowq_max_workers takes.
namespace iowq {
inline constexpr unsigned bound = 0;   // files: limited by queue depth and CPUs
inline constexpr unsigned unbound = 1; // everything else: limited by RLIMIT_NPROC
} // namespace iowq

static_assert(sizeof(files_update) == 16 && sizeof(rsrc_register) == 32);
static_assert(sizeof(rsrc_update) == 16 && sizeof(rsrc_update2) == 32);
static_assert(sizeof(restriction) == 16 && sizeof(clock_register) == 16);
static_assert(sizeof(clone_buffers) == 32 && sizeof(buf_reg) == 40 && sizeof(buf_status) == 40);
static_assert(sizeof(napi) == 16 && sizeof(sync_cancel_reg) == 64);
static_assert(sizeof(file_index_range) == 16 && sizeof(region_desc) == 64);
static_assert(sizeof(mem_region_reg) == 32);

} // namespace coil::uring
