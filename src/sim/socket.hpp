#pragma once

#include "endpoint.hpp"
#include "file.hpp"

#include <cerrno>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <netinet/tcp.h>

namespace coil::sim::detail {

/// The common part of all sockets: names and options.
class socket_file : public file {
public:
    socket_file(machine& of, int family, int type) noexcept
        : file(of, kind::socket), family_(family), type_(type) {}

    int attempt(op& call) override;

    [[nodiscard]] int family() const noexcept { return family_; }
    [[nodiscard]] int type() const noexcept { return type_; }
    /// Whether an IPv6 socket also serves IPv4.
    [[nodiscard]] bool takes_ipv4() const noexcept;
    [[nodiscard]] const endpoint& local() const noexcept { return local_; }
    /// Returns the length, or -errno.
    int get_option(int level, int name, void* value, ::socklen_t room);
    int set_option(int level, int name, const void* value, ::socklen_t length);
    int get_name(bool of_peer, void* address, ::socklen_t* length);

protected:
    virtual int bind(const endpoint& to) = 0;
    virtual int listen(int backlog) = 0;
    virtual int accept(op& call) = 0;
    virtual int connect(op& call, const endpoint& to) = 0;
    virtual int send(op& call, int flags) = 0;
    virtual int receive(op& call, int flags) = 0;
    virtual int shutdown(int how) = 0;
    virtual const endpoint* peer() const noexcept = 0;
    virtual bool is_listening() const noexcept { return false; }
    /// TCP_INFO, as far as the simulation knows it. Returns 0 or -errno.
    virtual int describe(::tcp_info&) const noexcept { return -EOPNOTSUPP; }

    /// Joins and leaves multicast groups: 0 or -errno.
    virtual int change_groups(int, int, const void*, ::socklen_t) { return -ENOPROTOOPT; }

    /// The pending error, which SO_ERROR reports once.
    int take_error() noexcept { return -std::exchange(error_, 0); }
    [[nodiscard]] int option(int level, int name) const noexcept;
    /// SO_LINGER with a time of 0.
    [[nodiscard]] bool resets_at_close() const noexcept;
    /// An address of the network as this socket reports it.
    [[nodiscard]] endpoint as_seen(const endpoint& e) const {
        return family_ == AF_INET6 ? e.mapped() : e;
    }
    /// Checks that a local address belongs to this machine: 0 or -errno.
    int check_local(endpoint& to);
    /// bind(2). `is_late`: the socket has a name or a peer.
    int bind_once(const endpoint& to, bool is_late);
    /// bind(2) for a socket without a name.
    int take_name(const endpoint& to);
    /// Stores the destination that a call names and returns 1. Returns 0 if it names none, or
    /// -errno.
    static int named_target(const op& call, endpoint& target);
    /// Binds to a name chosen by the machine, unless the socket is bound.
    int bind_somewhere();

    endpoint local_;
    bool bound_ = false;
    int error_ = 0; // > 0

private:
    int read_name(const uring::sqe& entry, endpoint& to) const;
    int option_call(const uring::sqe& entry);
    int get_computed(int name, void* value, ::socklen_t room);

    const int family_;
    const int type_;
    std::map<std::pair<int, int>, std::vector<std::byte>> options_;
};

} // namespace coil::sim::detail
