#include <coil/context/detail/perform.hpp>
#include <coil/net/multicast.hpp>

#include <cerrno>
#include <cstring>

#include <netinet/in.h>

namespace coil::net {

namespace {

int set(const socket& s, int level, int name, const void* value, ::socklen_t size) noexcept {
    return coil::detail::perform(
        uring::prep::setsockopt(s.native_handle(), level, name, value, size));
}
int set(const socket& s, int level, int name, int value) noexcept {
    return set(s, level, name, &value, sizeof value);
}

int level_of(const endpoint& group) noexcept {
    return group.family() == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
}

/// Finds the interface of a group, in the form that system calls take. Returns 0 or -errno.
int interface_of(const endpoint& group, network_interface on, std::uint32_t& index) noexcept {
    if (!group.is_inet()) {
        return -EAFNOSUPPORT;
    }
    const std::uint32_t scope = group.as_inet().scope_id();
    index = on ? on.index() : scope;
    return scope != 0 && scope != index ? -EINVAL : 0;
}

/// Restricts a socket to the groups that it has joined itself. Returns 0 or -errno.
int restrict_to_joined(const socket& s, const endpoint& group) noexcept {
    if (!group.is_inet()) {
        return -EAFNOSUPPORT;
    }
    return group.family() == AF_INET6 ? set(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0)
                                      : set(s, IPPROTO_IP, IP_MULTICAST_ALL, 0);
}

io_result change(const socket& s, int name, const endpoint& group, network_interface on) noexcept {
    ::group_req request{};
    if (const int error = interface_of(group, on, request.gr_interface); error < 0) {
        return io_result(error);
    }
    std::memcpy(&request.gr_group, group.data(), group.size());
    return io_result(set(s, level_of(group), name, &request, sizeof request));
}

io_result change(const socket& s, int name, const endpoint& group, const endpoint& source,
                 network_interface on) noexcept {
    ::group_source_req request{};
    if (const int error = interface_of(group, on, request.gsr_interface); error < 0) {
        return io_result(error);
    }
    if (source.family() != group.family()) {
        return io_result(source.is_inet() ? -EINVAL : -EAFNOSUPPORT);
    }
    std::memcpy(&request.gsr_group, group.data(), group.size());
    std::memcpy(&request.gsr_source, source.data(), source.size());
    return io_result(set(s, level_of(group), name, &request, sizeof request));
}

} // namespace

io_result join_group(const socket& s, const endpoint& group, network_interface on) noexcept {
    const int restricted = restrict_to_joined(s, group);
    return restricted < 0 ? io_result(restricted) : change(s, MCAST_JOIN_GROUP, group, on);
}

io_result leave_group(const socket& s, const endpoint& group, network_interface on) noexcept {
    return change(s, MCAST_LEAVE_GROUP, group, on);
}

io_result join_source_group(const socket& s, const endpoint& group, const endpoint& source,
                            network_interface on) noexcept {
    const int restricted = restrict_to_joined(s, group);
    return restricted < 0 ? io_result(restricted)
                          : change(s, MCAST_JOIN_SOURCE_GROUP, group, source, on);
}

io_result leave_source_group(const socket& s, const endpoint& group, const endpoint& source,
                             network_interface on) noexcept {
    return change(s, MCAST_LEAVE_SOURCE_GROUP, group, source, on);
}

io_result set_multicast(const socket& s, const multicast_options& options) noexcept {
    constexpr int most_hops = 255;
    if (options.hops && (*options.hops < 0 || *options.hops > most_hops)) {
        return io_result(-EINVAL);
    }
    int family = AF_UNSPEC;
    int result = coil::detail::perform(
        uring::prep::getsockopt(s.native_handle(), SOL_SOCKET, SO_DOMAIN, &family, sizeof family));
    if (result >= 0 && family != AF_INET && family != AF_INET6) {
        result = -EAFNOSUPPORT;
    }
    const auto set_both = [&](int v4, int v6, int value) {
        if (result >= 0 && family == AF_INET6) {
            result = set(s, IPPROTO_IPV6, v6, value);
        }
        if (result >= 0) {
            result = set(s, IPPROTO_IP, v4, value);
        }
    };
    if (options.interface) {
        if (result >= 0 && family == AF_INET6) {
            result = set(s, IPPROTO_IPV6, IPV6_MULTICAST_IF,
                         static_cast<int>(options.interface->index()));
        }
        if (result >= 0) {
            ::ip_mreqn request{};
            request.imr_ifindex = static_cast<int>(options.interface->index());
            result = set(s, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
        }
    }
    if (options.hops) {
        set_both(IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS, *options.hops);
    }
    if (options.loop) {
        set_both(IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP, *options.loop ? 1 : 0);
    }
    return io_result(result < 0 ? result : 0);
}

} // namespace coil::net
