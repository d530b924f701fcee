// Datagrams: delivered whole, but possibly late, twice, reordered, or not at all.

#include "datagram.hpp"

#include "bytes.hpp"
#include "machine.hpp"
#include "network.hpp"

#include <algorithm>
#include <cerrno>

namespace coil::sim::detail {

namespace {

constexpr std::size_t largest = 65'507;

} // namespace

/// A datagram in flight.
class datagram_socket::packet final : public object {
public:
    packet(machine& to, endpoint target, datagram d)
        : to_(to), target_(std::move(target)), datagram_(std::move(d)) {}

    void arrive() {
        if (!to_.up) {
            return;
        }
        if (target_.is_multicast()) {
            for (datagram_socket* const s : to_.groups.members(target_, datagram_.from)) {
                if (s->listens_to(target_, datagram_.from)) {
                    deliver(*s);
                }
            }
            return;
        }
        auto* const socket = dynamic_cast<datagram_socket*>(to_.find_name(SOCK_DGRAM, target_));
        if (socket == nullptr) {
            to_.world.trace.event("a datagram has no receiver", to_.index);
            unreachable();
            return;
        }
        if (socket->has_peer_ && socket->peer_ != socket->as_seen(datagram_.from)) {
            return;
        }
        deliver(*socket);
    }

private:
    void deliver(datagram_socket& socket) {
        to_.world.trace.event("a datagram arrives", to_.index,
                              static_cast<std::int64_t>(datagram_.bytes.size()));
        socket.take(datagram_);
    }

    /// Reports the error to the sender if it is connected: udp(7).
    void unreachable() {
        machine* const back = to_.net.find(to_, datagram_.from);
        if (back == nullptr || !back->up) {
            return;
        }
        auto* const sender =
            dynamic_cast<datagram_socket*>(back->find_name(SOCK_DGRAM, datagram_.from));
        if (sender != nullptr && sender->has_peer_ && sender->peer_ == sender->as_seen(target_)) {
            sender->error_ = ECONNREFUSED;
            sender->changed();
        }
    }

    machine& to_;
    const endpoint target_;
    const datagram datagram_;
};

datagram_socket::~datagram_socket() {
    handle_->who = nullptr;
    own_machine.forget_names(*this);
    own_machine.groups.forget(*this);
    if (own_machine.up) {
        wake_senders();
    }
}

void datagram_socket::join(datagram_socket& a, datagram_socket& b) {
    a.local_peer_ = b.handle_;
    b.local_peer_ = a.handle_;
    a.has_peer_ = b.has_peer_ = true;
    a.peer_.family = b.peer_.family = AF_UNIX;
}

std::uint32_t datagram_socket::events() {
    std::uint32_t all = POLLOUT | POLLWRNORM;
    if (!received_.empty() || ended_) {
        all |= POLLIN | POLLRDNORM;
    }
    if (ended_) {
        all |= POLLRDHUP | (sending_ended_ ? POLLHUP : 0);
    }
    if (local_peer_ && local_peer_->who != nullptr && local_peer_->who->is_full_for(*this, 1)) {
        all &= ~static_cast<std::uint32_t>(POLLOUT | POLLWRNORM);
        local_peer_->who->block(*this); // a poll may wait for room
    }
    return all | (error_ != 0 ? POLLERR : 0U);
}

int datagram_socket::bind(const endpoint& to) {
    if (const int error = bind_once(to, bound_); error != 0) {
        return error;
    }
    keeps_address_ = !to.is_any();
    keeps_port_ = to.port != 0;
    return 0;
}

/// connect(2) with AF_UNSPEC: the socket keeps only what was given to bind(2) explicitly.
void datagram_socket::disconnect() {
    has_peer_ = false;
    if (!keeps_address_) {
        local_.ip = {};
    }
    if (!keeps_port_) {
        own_machine.forget_names(*this);
        local_.port = 0;
        bound_ = false;
    }
}

int datagram_socket::connect(op&, const endpoint& to) {
    if (family() == AF_UNIX) {
        return connect_local(to);
    }
    if (to.family == AF_UNSPEC) {
        disconnect();
        return 0;
    }
    if (to.family != family()) {
        return -EAFNOSUPPORT;
    }
    if (const int error = bind_somewhere(); error != 0) {
        return error;
    }
    if (local_.is_any()) {
        const endpoint there = takes_ipv4() ? to.unmapped() : to;
        local_ = as_seen(own_machine.address_towards(there, local_.port));
    }
    peer_ = to;
    has_peer_ = true;
    return 0;
}

datagram_socket::datagram datagram_socket::datagram_of(const op& call) const {
    datagram d{local_, {}};
    d.bytes.reserve(call.size());
    for_each_part(call.data, 0, SIZE_MAX, [&](const std::byte* from, std::size_t n) {
        d.bytes.insert(d.bytes.end(), from, from + n);
    });
    return d;
}

int datagram_socket::send(op& call, int) {
    if (family() == AF_UNIX) {
        return send_local(call);
    }
    if (const int error = bind_somewhere(); error != 0) { // even if the call fails, as in Linux
        return error;
    }
    if (sending_ended_) {
        return -EPIPE;
    }
    if (error_ != 0) {
        return take_error();
    }
    endpoint target = peer_;
    const int named = named_target(call, target);
    if (named < 0) {
        return named;
    }
    if (named == 0 && !has_peer_) {
        return -EDESTADDRREQ;
    }
    if (target.family != family()) {
        return -EAFNOSUPPORT;
    }
    if (call.size() > largest) {
        return -EMSGSIZE;
    }
    if (own_machine.world.fault(own_machine.world.options.faults.no_buffers, "ENOBUFS")) {
        return -ENOBUFS;
    }
    return send_over_network(target, datagram_of(call));
}

/// A datagram that the network loses counts as sent.
int datagram_socket::send_over_network(endpoint target, datagram d) {
    const auto count = static_cast<int>(d.bytes.size());
    if (takes_ipv4()) {
        target = target.unmapped();
        d.from = d.from.unmapped();
    }
    if (d.from.is_any() || d.from.is_multicast()) {
        d.from = own_machine.address_towards(target, local_.port);
    }
    if (target.is_multicast()) {
        send_to_group(target, d);
        return count;
    }
    machine* const to = own_machine.net.find(own_machine, target);
    if (to == nullptr) {
        return count; // lost silently
    }
    if (target.is_any()) {
        target = own_machine.address_towards(target, target.port);
    }
    transmit(*to, target, d);
    return count;
}

void datagram_socket::transmit(machine& to, const endpoint& target, const datagram& d) {
    const link_options& link = own_machine.net.link(own_machine, to);
    if (own_machine.net.is_cut(own_machine, to) || own_machine.world.random.chance(link.loss)) {
        own_machine.world.trace.event("a datagram is lost to", own_machine.index, to.index);
        return;
    }
    const unsigned copies = own_machine.world.random.chance(link.duplicate) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
        const auto p = make<packet>(to, target, d);
        own_machine.world.at(own_machine.net.arrival(own_machine, to, d.bytes.size() + 28), *p,
                             [](object& about, std::uint64_t, std::uint64_t) {
                                 static_cast<packet&>(about).arrive();
                             });
    }
}

void datagram_socket::take(datagram d) {
    d.from = as_seen(d.from);
    if (held_ + d.bytes.size() > own_machine.world.options.socket_buffer && held_ > 0) {
        own_machine.world.trace.event("a datagram exceeds the socket buffer", own_machine.index);
        return;
    }
    held_ += d.bytes.size();
    received_.push_back(std::move(d));
    changed(POLLIN | POLLRDNORM);
}

int datagram_socket::receive(op& call, int flags) {
    if (error_ != 0) {
        return take_error();
    }
    if (received_.empty()) {
        return ended_ && (flags & MSG_DONTWAIT) == 0 ? 0 : would_wait;
    }
    if (call.chooser != nullptr) {
        if (const int error = call.chooser->choose(call); error != 0) {
            return error;
        }
    }
    const datagram& d = received_.front();
    std::size_t offset = 0;
    const std::size_t count = std::min(d.bytes.size(), call.size());
    for_each_part(call.data, 0, count, [&](std::byte* to, std::size_t n) {
        std::copy_n(d.bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, to);
        offset += n;
    });
    const std::size_t whole = d.bytes.size();
    if (call.truncated != nullptr) {
        *call.truncated = count < whole;
    }
    if (call.header != nullptr) {
        call.header->msg_flags = count < whole ? MSG_TRUNC : 0;
        if (family() == AF_UNIX && d.from.path.empty()) {
            call.header->msg_namelen = 0;
        } else if (call.header->msg_name != nullptr) {
            ::socklen_t length = call.header->msg_namelen;
            endpoint from = d.from;
            from.family = family();
            from.write(call.header->msg_name, length);
            call.header->msg_namelen = length;
        }
        put_files(own_machine, d.files, *call.header);
    }
    if ((flags & MSG_PEEK) == 0) {
        held_ -= whole;
        received_.pop_front();
        wake_senders();
    }
    return static_cast<int>((flags & MSG_TRUNC) != 0 ? whole : count);
}

int datagram_socket::shutdown(int how) {
    if (how < SHUT_RD || how > SHUT_RDWR) {
        return -EINVAL;
    }
    if (!has_peer_ && family() != AF_UNIX) {
        return -ENOTCONN;
    }
    ended_ = ended_ || how != SHUT_WR;
    sending_ended_ = sending_ended_ || how != SHUT_RD;
    changed();
    return 0;
}

} // namespace coil::sim::detail
