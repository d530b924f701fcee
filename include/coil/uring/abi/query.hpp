#pragma once

#include <cstddef>
#include <cstdint>

// Queries (Linux 6.18): what the kernel supports. register_op::query needs no ring: it also accepts
// the descriptor -1.

namespace coil::uring {

/// Argument of register_op::query; `count` is 0. The kernel writes as much of the answer as it has
/// and as `size` allows, so both sides may be compiled with structs of different lengths. A query
/// that fails sets `result`; the call itself succeeds.
struct query_hdr {
    std::uint64_t next_entry; // address of the next query_hdr, or 0
    std::uint64_t query_data; // address of the answer
    std::uint32_t query_op;   // query_op::*
    std::uint32_t size;       // of the answer; out: the number of bytes written
    std::int32_t result;      // in: 0; out: 0 or -errno
    std::uint32_t resv[3];
};

namespace query_op {
inline constexpr std::uint32_t opcodes = 0; // the answer is a query_opcode
} // namespace query_op

/// The answer to query_op::opcodes.
struct query_opcode {
    std::uint32_t nr_request_opcodes; // one more than the last opcode
    std::uint32_t nr_register_opcodes;
    std::uint64_t feature_flags;    // feature::*
    std::uint64_t ring_setup_flags; // setup::*
    std::uint64_t enter_flags;      // enter_flag::*
    std::uint64_t sqe_flags;        // sqe_flag::*
    std::uint32_t nr_query_opcodes;
    std::uint32_t pad;
};

static_assert(sizeof(query_hdr) == 40 && offsetof(query_hdr, result) == 24);
static_assert(sizeof(query_opcode) == 48 && offsetof(query_opcode, sqe_flags) == 32);

} // namespace coil::uring
