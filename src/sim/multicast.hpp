#pragma once

#include "endpoint.hpp"

#include <vector>

namespace coil::sim::detail {

class datagram_socket;

/// The multicast groups that the sockets of a machine have joined: ip(7), ipv6(7).
class multicast_groups {
public:
    /// Joins for the datagrams of one source, or of all sources if `source` is null. Returns 0 or
    /// -errno.
    int join(datagram_socket& socket, const endpoint& group, const endpoint* source);
    int leave(const datagram_socket& socket, const endpoint& group, const endpoint* source);
    void forget(const datagram_socket& socket) noexcept;
    /// The sockets that have joined the group for datagrams of this source.
    [[nodiscard]] std::vector<datagram_socket*> members(const endpoint& group,
                                                        const endpoint& source) const;

private:
    struct membership {
        datagram_socket* socket;
        endpoint group;
        endpoint source; // family AF_UNSPEC: all sources

        [[nodiscard]] bool is_for_all() const noexcept { return source.family == AF_UNSPEC; }
    };

    std::vector<membership> all_;
};

} // namespace coil::sim::detail
