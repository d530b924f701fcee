// Multicast: the memberships of groups, and datagrams to a group.

#include "multicast.hpp"

#include "datagram.hpp"
#include "machine.hpp"
#include "network.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>

namespace coil::sim::detail {

namespace {

/// The only interface of a machine.
constexpr std::uint32_t interface_index = 1;

bool is_same_address(const endpoint& a, const endpoint& b) noexcept {
    return a.family == b.family && a.ip == b.ip;
}

} // namespace

int multicast_groups::join(datagram_socket& socket, const endpoint& group, const endpoint* source) {
    for (membership& m : all_) {
        if (m.socket != &socket || !is_same_address(m.group, group)) {
            continue;
        }
        if (source == nullptr || is_same_address(m.source, *source)) {
            return -EADDRINUSE;
        }
        if (m.is_for_all()) {
            m.source = *source;
            return 0;
        }
    }
    all_.push_back({&socket, group, source != nullptr ? *source : endpoint{}});
    return 0;
}

int multicast_groups::leave(const datagram_socket& socket, const endpoint& group,
                            const endpoint* source) {
    const auto is_in_group = [&](const membership& m) {
        return m.socket == &socket && is_same_address(m.group, group);
    };
    if (source == nullptr) { // including the memberships for single sources
        return std::erase_if(all_, is_in_group) != 0 ? 0 : -EADDRNOTAVAIL;
    }
    if (std::ranges::none_of(all_, is_in_group)) {
        return -EINVAL;
    }
    const auto left = std::erase_if(all_, [&](const membership& m) {
        return is_in_group(m) && is_same_address(m.source, *source);
    });
    return left != 0 ? 0 : -EADDRNOTAVAIL;
}

void multicast_groups::forget(const datagram_socket& socket) noexcept {
    std::erase_if(all_, [&](const membership& m) { return m.socket == &socket; });
}

std::vector<datagram_socket*> multicast_groups::members(const endpoint& group,
                                                        const endpoint& source) const {
    std::vector<datagram_socket*> found;
    for (const membership& m : all_) {
        if (is_same_address(m.group, group) &&
            (m.is_for_all() || is_same_address(m.source, source))) {
            found.push_back(m.socket);
        }
    }
    return found;
}

int datagram_socket::change_groups(int level, int name, const void* value, ::socklen_t length) {
    const bool has_source = name == MCAST_JOIN_SOURCE_GROUP || name == MCAST_LEAVE_SOURCE_GROUP;
    ::group_source_req request{};
    if (length < (has_source ? sizeof request : sizeof(::group_req))) {
        return -EINVAL;
    }
    // group_req is the beginning of group_source_req.
    std::memcpy(&request, value, has_source ? sizeof request : sizeof(::group_req));
    endpoint group;
    endpoint source;
    int error = endpoint::read(group, &request.gsr_group, sizeof request.gsr_group);
    if (error == 0 && has_source) {
        error = endpoint::read(source, &request.gsr_source, sizeof request.gsr_source);
    }
    if (error != 0) {
        return error;
    }
    if (level != (family() == AF_INET ? IPPROTO_IP : IPPROTO_IPV6)) {
        return -ENOPROTOOPT; // simulated IPv6 sockets do not support IPv4
    }
    if (group.family != family() || !group.is_multicast() ||
        (has_source && source.family != family())) {
        return -EINVAL;
    }
    if (request.gsr_interface != 0 && request.gsr_interface != interface_index) {
        return -ENODEV;
    }
    const endpoint* const only = has_source ? &source : nullptr;
    return name == MCAST_JOIN_GROUP || name == MCAST_JOIN_SOURCE_GROUP
               ? own_machine.groups.join(*this, group, only)
               : own_machine.groups.leave(*this, group, only);
}

void datagram_socket::send_to_group(const endpoint& group, const datagram& d) {
    const bool is_v4 = family() == AF_INET;
    const int hops =
        is_v4 ? option(IPPROTO_IP, IP_MULTICAST_TTL) : option(IPPROTO_IPV6, IPV6_MULTICAST_HOPS);
    const int loop =
        is_v4 ? option(IPPROTO_IP, IP_MULTICAST_LOOP) : option(IPPROTO_IPV6, IPV6_MULTICAST_LOOP);
    for (machine* const to : own_machine.net.machines()) {
        if (to == &own_machine ? loop != 0 : hops > 0) {
            transmit(*to, group, d);
        }
    }
}

bool datagram_socket::listens_to(const endpoint& group, const endpoint& from) const noexcept {
    return bound_ && local_.port == group.port &&
           (local_.is_any() || is_same_address(local_, group)) && (!has_peer_ || peer_ == from);
}

} // namespace coil::sim::detail
