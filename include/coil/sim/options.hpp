#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/sim/fault_plan.hpp>

#include <cstddef>
#include <cstdint>

namespace coil::sim {

/// The network link between two hosts. Streams are ordered and reliable: loss only delays them.
/// Datagrams may be lost, duplicated and reordered.
struct link_options {
    std::chrono::nanoseconds latency = std::chrono::microseconds(50); ///< minimum, one way
    std::chrono::nanoseconds jitter = std::chrono::microseconds(50);  ///< maximum, added to the
                                                                      ///< latency
    std::uint64_t bytes_per_second = 1'250'000'000; ///< per direction, shared by all connections
    unsigned loss = 0;      ///< per thousand: a datagram is lost, a segment is retransmitted
    unsigned duplicate = 0; ///< per thousand: a datagram is duplicated
};

/// The disk of a host: latencies and capacity.
struct disk_options {
    std::chrono::nanoseconds latency = std::chrono::microseconds(20); ///< of most calls
    std::chrono::nanoseconds sync = std::chrono::microseconds(500);   ///< of fsync(2)
    std::uint64_t capacity = std::uint64_t{1} << 30;                  ///< bytes of data
};

/// The parameters of a world.
struct world_options {
    fault_plan faults = {};
    link_options link = {}; ///< the default link between hosts, see world::link()
    disk_options disk = {};
    /// The virtual time that a context's turn takes; without it a loop that polls the clock would
    /// never end.
    std::chrono::nanoseconds turn = std::chrono::nanoseconds(500);
    /// A connection without an answer for this long ends with ETIMEDOUT (tcp(7), TCP_USER_TIMEOUT).
    std::chrono::nanoseconds stream_timeout = std::chrono::minutes(15);
    /// A connect(2) without an answer for this long ends with ETIMEDOUT.
    std::chrono::nanoseconds connect_timeout = std::chrono::seconds(127);
    std::size_t socket_buffer = 64 * 1024; ///< capacity per direction in bytes, see SO_SNDBUF
    unsigned descriptors = 65'536;         ///< per host, see RLIMIT_NOFILE
    /// trace() returns at most this many lines, the most recent ones. The hash covers all lines.
    std::size_t trace_lines = 10'000;
    /// Whether to detect writes to buffers that the kernel owns.
    bool watch_buffers = true;
    /// Prints every trace line to stderr as it happens; also enabled by COIL_SIM_TRACE in the
    /// environment.
    bool print_trace = false;
};

} // namespace coil::sim
