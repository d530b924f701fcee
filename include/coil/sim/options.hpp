#pragma once

#include <coil/sim/fault_plan.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace coil::sim {

/// How long what is sent from one host to another takes. Streams keep their order and lose nothing:
/// what the network loses of them comes later. Datagrams are lost, doubled and overtake each other.
struct link_options {
    std::chrono::nanoseconds latency = std::chrono::microseconds(50); ///< at least, one way
    std::chrono::nanoseconds jitter = std::chrono::microseconds(50);  ///< at most, above that
    std::uint64_t bytes_per_second = 1'250'000'000; ///< each way, for all who share the link
    unsigned loss = 0;      ///< in a thousand: a datagram is lost, a segment is sent again
    unsigned duplicate = 0; ///< in a thousand: a datagram comes twice
};

/// How long what files ask of a disk takes, and how much it holds.
struct disk_options {
    std::chrono::nanoseconds latency = std::chrono::microseconds(20); ///< of most calls
    std::chrono::nanoseconds sync = std::chrono::microseconds(500);   ///< of fsync(2)
    std::uint64_t capacity = std::uint64_t{1} << 30;                  ///< bytes of data
};

/// How a world is set up.
struct world_options {
    fault_plan faults = {};
    link_options link = {}; ///< between any two hosts that have no other, see world::link()
    disk_options disk = {};
    /// What a turn of a context takes, so that a loop that looks at the clock ends.
    std::chrono::nanoseconds turn = std::chrono::nanoseconds(500);
    /// After so long without an answer a connection ends with ETIMEDOUT (tcp(7),
    /// TCP_USER_TIMEOUT).
    std::chrono::nanoseconds stream_timeout = std::chrono::minutes(15);
    /// The same for connect(2).
    std::chrono::nanoseconds connect_timeout = std::chrono::seconds(127);
    std::size_t socket_buffer = 64 * 1024; ///< bytes that a direction holds, see SO_SNDBUF
    unsigned descriptors = 65'536;         ///< of a host, see RLIMIT_NOFILE
    /// Lines that trace() gives at most: the last ones. The hash is of all.
    std::size_t trace_lines = 10'000;
    /// Whether buffers are watched while the kernel has them.
    bool watch_buffers = true;
    /// Every line of the trace to stderr as it happens; also by COIL_SIM_TRACE in the environment.
    bool print_trace = false;
};

} // namespace coil::sim
