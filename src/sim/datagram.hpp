#pragma once

#include "control_data.hpp"
#include "object.hpp"
#include "socket.hpp"

#include <cstddef>
#include <deque>
#include <vector>

namespace coil::sim::detail {

/// A socket of type SOCK_DGRAM: UDP, or AF_UNIX within a machine.
class datagram_socket final : public socket_file {
public:
    datagram_socket(machine& of, int family)
        : socket_file(of, family, SOCK_DGRAM), handle_(make<handle>(this)) {}
    ~datagram_socket() override;

    std::uint32_t events() override;

    static void join(datagram_socket& a, datagram_socket& b);

protected:
    int bind(const endpoint& to) override;
    int listen(int) override { return -EOPNOTSUPP; }
    int accept(op&) override { return -EOPNOTSUPP; }
    int connect(op& call, const endpoint& to) override;
    int send(op& call, int flags) override;
    int receive(op& call, int flags) override;
    int shutdown(int how) override;
    int change_groups(int level, int name, const void* value, ::socklen_t length) override;
    const endpoint* peer() const noexcept override { return has_peer_ ? &peer_ : nullptr; }

private:
    struct datagram {
        endpoint from;
        std::vector<std::byte> bytes;
        file_list files{};
    };
    class packet;
    /// Outlives the socket.
    struct handle final : object {
        explicit handle(datagram_socket* socket) noexcept : who(socket) {}
        datagram_socket* who; // null: it is closed
    };

    void disconnect();
    int send_over_network(endpoint target, datagram d);
    /// Sends to all machines of the world, as on one local network.
    void send_to_group(const endpoint& group, const datagram& d);
    void transmit(machine& to, const endpoint& target, const datagram& d);
    /// Whether this socket accepts a datagram of `from` to a group that it has joined.
    [[nodiscard]] bool listens_to(const endpoint& group, const endpoint& from) const noexcept;
    void take(datagram d);
    [[nodiscard]] datagram datagram_of(const op& call) const;

    // AF_UNIX: unix(7)
    int connect_local(const endpoint& to);
    int send_local(const op& call);
    /// The receiver of a call, or null and an error.
    datagram_socket* find_receiver(const op& call, int& error);
    /// Whether `other` may send to this socket: if this socket has a peer, only the peer may.
    [[nodiscard]] bool may_receive_from(const datagram_socket& other) const noexcept;
    [[nodiscard]] bool is_full_for(const datagram_socket& sender, std::size_t size) const noexcept;
    /// Discards the datagrams received from a former peer.
    void disconnected(datagram_socket* former);
    /// Adds a socket to those that are woken when there is room.
    void block(const datagram_socket& sender);
    void wake_senders();

    bool has_peer_ = false;
    bool keeps_address_ = false; // bind(2) was given an address
    bool keeps_port_ = false;    // bind(2) was given a port
    bool ended_ = false;
    bool sending_ended_ = false;
    endpoint peer_;
    std::deque<datagram> received_;
    std::size_t held_ = 0;
    const ref<handle> handle_;
    ref<handle> local_peer_;           // of an AF_UNIX socket
    std::vector<ref<handle>> blocked_; // senders that wait for room
};

} // namespace coil::sim::detail
