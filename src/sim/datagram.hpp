#pragma once

#include "control_data.hpp"
#include "socket.hpp"

#include <cstddef>
#include <deque>
#include <vector>

namespace coil::sim::detail {

/// A socket of type SOCK_DGRAM: UDP, or AF_UNIX within a machine.
class datagram_socket final : public socket_file {
public:
    datagram_socket(machine& of, int family) noexcept : socket_file(of, family, SOCK_DGRAM) {}
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
    const endpoint* peer() const noexcept override { return has_peer_ ? &peer_ : nullptr; }

private:
    struct datagram {
        endpoint from;
        std::vector<std::byte> bytes;
        file_list files{};
    };
    class packet;

    int find_target(const op& call, endpoint& target) const;
    int send_local(const endpoint& target, datagram d);
    int send_over_network(endpoint target, datagram d);
    void take(datagram d);

    bool has_peer_ = false;
    bool ended_ = false;
    bool sending_ended_ = false;
    endpoint peer_;
    datagram_socket* partner_ = nullptr; // the other end of a socket pair
    std::deque<datagram> received_;
    std::size_t held_ = 0;
};

} // namespace coil::sim::detail
