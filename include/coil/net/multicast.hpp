#pragma once

#include <coil/core/io_result.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/network_interface.hpp>
#include <coil/net/socket.hpp>

#include <optional>

namespace coil::net {

/// Joins a multicast group: the socket receives the datagrams that are sent to the group's address
/// and the port that the socket is bound to. Returns 0 or -errno.
///
///     net::socket s = net::socket::create_udp();
///     s.set_reuse_address(true).value();             // other programs may listen too
///     s.bind({"239.1.2.3", 5000}).value();
///     net::join_group(s, {"239.1.2.3", 0}, "eth0").value();
///
/// `group` is an IPv4 or IPv6 address; its port is ignored. If no interface is given, the one in
/// the scope ID of an IPv6 group is used, otherwise Linux chooses one from its routing table. A
/// socket may join several groups, and one group on several interfaces. Closing the socket leaves
/// them.
///
/// The call also ensures that, of the groups of that address family, the socket receives only those
/// that it has joined itself. (By default Linux delivers every group that any program of the
/// machine has joined: IP_MULTICAST_ALL, IPV6_MULTICAST_ALL.) A socket bound to the group's address
/// receives nothing else; one that is bound to any address also receives unicast datagrams.
///
/// Errors: -EINVAL: not a multicast address, or its scope is another interface. -ENODEV: no such
/// interface, or no route. -EADDRINUSE: joined already. -ENOBUFS: more groups than
/// net.ipv4.igmp_max_memberships. -EAFNOSUPPORT: not an internet address. See ip(7), ipv6(7).
///
/// Threading: as for the socket's options. It completes immediately and is not a cancellation
/// point.
io_result join_group(const socket& s, const endpoint& group, network_interface on = {}) noexcept;
/// Leaves a group; `on` is the interface on which it was joined. -EADDRNOTAVAIL: the socket is not
/// a member.
io_result leave_group(const socket& s, const endpoint& group, network_interface on = {}) noexcept;

/// Source-specific multicast (RFC 4607): like join_group() and leave_group(), but the socket
/// receives only the datagrams that `source` sends to the group. May be called for several sources
/// of a group. If the socket had joined the group for all sources, it then receives the datagrams
/// of `source` only. -ENOBUFS also means more sources than net.ipv4.igmp_max_msf or
/// net.ipv6.mld_max_msf, and -EINVAL also that `source` is not of the group's family, or that a
/// group to leave was not joined.
io_result join_source_group(const socket& s, const endpoint& group, const endpoint& source,
                            network_interface on = {}) noexcept;
io_result leave_source_group(const socket& s, const endpoint& group, const endpoint& source,
                             network_interface on = {}) noexcept;

/// How a socket sends to multicast groups. Members without a value leave the setting as it is.
struct multicast_options {
    /// The interface on which datagrams are sent; with network_interface(), the default, the
    /// routing table determines it. (IP_MULTICAST_IF, IPV6_MULTICAST_IF)
    std::optional<network_interface> interface = {};
    /// The number of routers that datagrams may pass, plus one: 0 (this machine only) to 255. The
    /// default is 1, the local network. (IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS)
    std::optional<int> hops = {};
    /// Whether members on this machine, including the sending socket, receive them as well; the
    /// default is true. No effect on the loopback interface. (IP_MULTICAST_LOOP,
    /// IPV6_MULTICAST_LOOP)
    std::optional<bool> loop = {};
};

/// Sets these options on an IPv4 or IPv6 socket: 0 or -errno. On an IPv6 socket they apply to IPv4
/// groups too.
///
///     net::set_multicast(s, {.interface = "eth0", .hops = 4, .loop = false}).value();
///     co_await s.send_to(data, {"239.1.2.3", 5000});
///
/// Errors: -EINVAL: hops out of range. -ENODEV, -EADDRNOTAVAIL: no such interface. -EAFNOSUPPORT:
/// not an internet socket. After an error some of the options may be set. Threading and
/// cancellation: as for join_group().
io_result set_multicast(const socket& s, const multicast_options& options) noexcept;

} // namespace coil::net
