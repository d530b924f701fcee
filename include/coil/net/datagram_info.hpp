#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/core/io_result.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/socket.hpp>

#include <cstddef>

namespace coil::net {

/// The properties of a received datagram, or the parameters for one to be sent.
struct datagram_info {
    /// The sender of a received datagram, or the receiver of one to be sent. AF_UNSPEC: the peer to
    /// which the socket is connected.
    endpoint peer = {};
    /// 0: the data is one datagram. Otherwise the data consists of several datagrams of this size
    /// in bytes; the last one may be shorter. When sending, the kernel cuts the data into these
    /// datagrams (UDP_SEGMENT), at most 64, or 128 since Linux 6.9, and 64 KiB in total.
    std::size_t segment_size = 0;
    /// The ECN bits, 0 to 3: Not-ECT, ECT(1), ECT(0), CE. -1: unknown; when sending, the setting of
    /// the socket. Any other value also sets the DSCP of the sent datagram to 0.
    int ecn = -1;
    /// When the kernel received it; the epoch if timestamps are not enabled. Ignored when sending.
    std::chrono::system_clock::time_point time = {};
};

/// The information that a socket reports with each datagram; see enable().
///
///     net::enable(socket, {.segments = true, .ecn = true}).value();
struct datagram_options {
    /// UDP_GRO: datagrams of one sender and one size that arrive together are delivered as one
    /// piece of up to 64 KiB, with their size as segment_size. This reduces the cost of each
    /// datagram in the network stack. Buffers must then hold 64 KiB; a smaller buffer truncates the
    /// piece.
    bool segments = false;
    /// The ECN bits of the IP header.
    bool ecn = false;
    /// The time at which the kernel received the datagram.
    bool timestamps = false;
};

/// Enables reports on a UDP socket over IPv4 or IPv6: 0 or -errno. Options that are false are left
/// as they are.
io_result enable(const socket& s, const datagram_options& options) noexcept;

} // namespace coil::net
