#include "socket_options.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/time.h>

namespace coil::sim::detail {

namespace {

using enum socket_option::kind;

/// The options, except those that get_option() computes and those of multicast groups.
constexpr socket_option known[] = {
    {SOL_SOCKET, SO_REUSEADDR, boolean},
    {SOL_SOCKET, SO_REUSEPORT, boolean},
    {SOL_SOCKET, SO_KEEPALIVE, boolean},
    {SOL_SOCKET, SO_BROADCAST, boolean},
    {SOL_SOCKET, SO_OOBINLINE, boolean},
    {SOL_SOCKET, SO_DONTROUTE, boolean},
    {SOL_SOCKET, SO_PASSCRED, boolean},
    {SOL_SOCKET, SO_TIMESTAMP, boolean},
    {SOL_SOCKET, SO_TIMESTAMPNS, boolean},
    {SOL_SOCKET, SO_LINGER, structure, 0, 0, 0, sizeof(::linger)},
    {SOL_SOCKET, SO_RCVTIMEO, structure, 0, 0, 0, sizeof(::timeval)},
    {SOL_SOCKET, SO_SNDTIMEO, structure, 0, 0, 0, sizeof(::timeval)},
    {SOL_SOCKET, SO_SNDBUF, number, 0, INT_MIN, INT_MAX},
    {SOL_SOCKET, SO_RCVBUF, number, 0, INT_MIN, INT_MAX},
    {SOL_SOCKET, SO_RCVLOWAT, number, 1, INT_MIN, INT_MAX},
    {SOL_SOCKET, SO_PRIORITY, number, 0, INT_MIN, INT_MAX},
    {SOL_SOCKET, SO_MARK, number, 0, INT_MIN, INT_MAX},
    {SOL_SOCKET, SO_INCOMING_CPU, number, -1, INT_MIN, INT_MAX},
    {IPPROTO_TCP, TCP_NODELAY, boolean},
    {IPPROTO_TCP, TCP_CORK, boolean},
    {IPPROTO_TCP, TCP_QUICKACK, boolean, 1},
    {IPPROTO_TCP, TCP_KEEPIDLE, number, 7200, 1, 32767},
    {IPPROTO_TCP, TCP_KEEPINTVL, number, 75, 1, 32767},
    {IPPROTO_TCP, TCP_KEEPCNT, number, 9, 1, 127},
    {IPPROTO_TCP, TCP_SYNCNT, number, 6, 1, 127},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, number, 0, 0, INT_MAX},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, number, 0, INT_MIN, INT_MAX},
    {IPPROTO_UDP, UDP_GRO, boolean},
    {IPPROTO_IP, IP_TTL, number, 64, 1, 255},
    {IPPROTO_IP, IP_TOS, number, 0, 0, 255},
    {IPPROTO_IP, IP_RECVTOS, boolean},
    {IPPROTO_IP, IP_PKTINFO, boolean},
    {IPPROTO_IP, IP_FREEBIND, boolean},
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, boolean},
    {IPPROTO_IP, IP_MULTICAST_TTL, number, 1, 0, 255},
    {IPPROTO_IP, IP_MULTICAST_LOOP, boolean, 1},
    {IPPROTO_IP, IP_MULTICAST_ALL, boolean, 1},
    {IPPROTO_IP, IP_MULTICAST_IF, structure, 0, 0, 0, sizeof(::in_addr)},
    {IPPROTO_IPV6, IPV6_V6ONLY, boolean},
    {IPPROTO_IPV6, IPV6_TCLASS, number, 0, 0, 255},
    {IPPROTO_IPV6, IPV6_RECVTCLASS, boolean},
    {IPPROTO_IPV6, IPV6_RECVPKTINFO, boolean},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, number, 64, 0, 255},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, number, 1, 0, 255},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, boolean, 1},
    {IPPROTO_IPV6, IPV6_MULTICAST_ALL, boolean, 1},
    {IPPROTO_IPV6, IPV6_MULTICAST_IF, number, 0, 0, INT_MAX},
};

const socket_option* find_known(int level, int name) noexcept {
    const auto* const found = std::ranges::find_if(
        known, [&](const socket_option& o) { return o.level == level && o.name == name; });
    return found != std::end(known) ? found : nullptr;
}

/// The error for a level that a socket does not have, or 0. The layers of Linux refuse such a level
/// with different errors.
int check_level(int family, int type, int level, bool sets) noexcept {
    if (level == SOL_SOCKET) {
        return 0;
    }
    if (family == AF_UNIX) {
        return -EOPNOTSUPP;
    }
    const int protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
    if (level == protocol || level == IPPROTO_IP) {
        return 0;
    }
    if (family == AF_INET6) {
        return level == IPPROTO_IPV6 ? 0 : -ENOPROTOOPT;
    }
    return sets ? -ENOPROTOOPT : -EOPNOTSUPP;
}

} // namespace

const socket_option* find_option(int family, int type, int level, int name, bool sets,
                                 int& error) noexcept {
    error = check_level(family, type, level, sets);
    if (error != 0) {
        return nullptr;
    }
    const bool is_local = family == AF_UNIX;
    if (level == SOL_SOCKET &&
        ((name == SO_PASSCRED && !is_local) || (name == SO_REUSEPORT && is_local && sets))) {
        error = -EOPNOTSUPP;
        return nullptr;
    }
    const socket_option* const found = find_known(level, name);
    error = found != nullptr ? 0 : -ENOPROTOOPT;
    return found;
}

int initial_value(int level, int name) noexcept {
    const socket_option* const found = find_known(level, name);
    return found != nullptr ? found->initial : 0;
}

} // namespace coil::sim::detail
