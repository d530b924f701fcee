#pragma once

#include <cstdint>

// Zero-copy receive (Linux 6.15): a receive queue of a network device that places payloads in
// memory of the process, the area. It is registered with a ring by register_op::zcrx_ifq, and used
// by opcode::recv_zc. The process returns pieces of the area through the refill ring.

namespace coil::uring {

/// An entry of the refill ring: the piece of the area that the process returns.
struct zcrx_rqe {
    std::uint64_t off; // zcrx_area_reg::rq_area_token | the offset of any byte of the piece
    std::uint32_t len;
    std::uint32_t pad;
};

/// The second half of the 32-byte completion of a recv_zc.
struct zcrx_cqe {
    std::uint64_t off; // of the data; the bits in zcrx_area_mask name the area
    std::uint64_t pad;
};

inline constexpr unsigned zcrx_area_shift = 48;
inline constexpr std::uint64_t zcrx_area_mask = ~((std::uint64_t{1} << zcrx_area_shift) - 1);

/// Out: byte offsets of the refill ring's words and entries from the start of its region.
struct zcrx_offsets {
    std::uint32_t head; // written by the kernel
    std::uint32_t tail; // written by the process
    std::uint32_t rqes;
    std::uint32_t resv2;
    std::uint64_t resv[2];
};

struct zcrx_area_reg {
    std::uint64_t addr; // whole pages
    std::uint64_t len;
    std::uint64_t rq_area_token; // out
    std::uint32_t flags;         // zcrx_area_flag::*
    std::uint32_t dmabuf_fd;
    std::uint64_t resv2[2];
};

namespace zcrx_area_flag {
inline constexpr std::uint32_t dmabuf = 1; // 6.16
} // namespace zcrx_area_flag

/// Argument of register_op::zcrx_ifq; `count` is 1.
struct zcrx_ifq_reg {
    std::uint32_t if_idx; // of the network interface
    std::uint32_t if_rxq; // its hardware queue
    std::uint32_t rq_entries;
    std::uint32_t flags;
    std::uint64_t area_ptr;   // address of a zcrx_area_reg
    std::uint64_t region_ptr; // address of a region_desc: the memory of the refill ring
    zcrx_offsets offsets;
    std::uint32_t zcrx_id; // out
    std::uint32_t resv2;
    std::uint64_t resv[3];
};

static_assert(sizeof(zcrx_rqe) == 16 && sizeof(zcrx_cqe) == 16 && sizeof(zcrx_offsets) == 32);
static_assert(sizeof(zcrx_area_reg) == 48 && sizeof(zcrx_ifq_reg) == 96);

} // namespace coil::uring
