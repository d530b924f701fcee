// Datagram sockets of the family AF_UNIX: unix(7). Their peer is a socket, not a name.

#include "datagram.hpp"
#include "machine.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace coil::sim::detail {

namespace {

constexpr std::size_t queue_length = 10; // net.unix.max_dgram_qlen

} // namespace

bool datagram_socket::may_receive_from(const datagram_socket& other) const noexcept {
    return !local_peer_ || local_peer_ == other.handle_;
}

/// If the sender is this socket's peer, the queue is limited by bytes only, not by datagrams.
bool datagram_socket::is_full_for(const datagram_socket& sender, std::size_t size) const noexcept {
    return (local_peer_ != sender.handle_ && received_.size() > queue_length) ||
           (held_ + size > own_machine.world.options.socket_buffer && held_ > 0);
}

int datagram_socket::connect_local(const endpoint& to) {
    datagram_socket* other = nullptr;
    if (to.family != AF_UNSPEC) {
        if (to.family != AF_UNIX) {
            return -EINVAL;
        }
        int error = 0;
        other = static_cast<datagram_socket*>(own_machine.find_local(SOCK_DGRAM, to, error));
        if (other == nullptr) {
            return error;
        }
        if (!other->may_receive_from(*this)) {
            return -EPERM;
        }
    }
    const ref<handle> before =
        std::exchange(local_peer_, other != nullptr ? other->handle_ : ref<handle>());
    has_peer_ = other != nullptr;
    peer_ = other != nullptr ? other->local_ : endpoint::nameless();
    if (before && !(before == local_peer_)) {
        disconnected(before->who);
    }
    changed();
    return 0;
}

void datagram_socket::disconnected(datagram_socket* former) {
    if (received_.empty()) {
        return;
    }
    received_.clear();
    held_ = 0;
    wake_senders();
    if (former != nullptr && former->local_peer_ == handle_) {
        former->error_ = ECONNRESET;
        former->changed();
    }
}

void datagram_socket::block(const datagram_socket& sender) {
    if (std::find(blocked_.begin(), blocked_.end(), sender.handle_) == blocked_.end()) {
        blocked_.push_back(sender.handle_);
    }
}

void datagram_socket::wake_senders() {
    for (const ref<handle>& one : std::exchange(blocked_, {})) {
        if (one->who != nullptr) {
            one->who->changed(POLLOUT | POLLWRNORM);
        }
    }
}

datagram_socket* datagram_socket::find_receiver(const op& call, int& error) {
    endpoint target;
    const int named = named_target(call, target);
    if (named != 0) {
        error = named < 0 ? named : target.family != AF_UNIX ? -EINVAL : 0;
    } else if (!local_peer_) {
        error = -ENOTCONN;
    }
    if (error == 0 && error_ != 0) {
        error = take_error();
    }
    if (error == 0 && sending_ended_) {
        error = -EPIPE;
    }
    if (error != 0) {
        return nullptr;
    }
    if (named != 0) {
        return static_cast<datagram_socket*>(own_machine.find_local(SOCK_DGRAM, target, error));
    }
    datagram_socket* const to = local_peer_->who;
    if (to == nullptr) {
        local_peer_ = {};
        has_peer_ = false;
        disconnected(nullptr);
        error = -ECONNREFUSED;
    }
    return to;
}

int datagram_socket::send_local(const op& call) {
    file_list files;
    int error = call.header != nullptr ? take_files(own_machine, *call.header, files) : 0;
    datagram_socket* const to = error == 0 ? find_receiver(call, error) : nullptr;
    if (to == nullptr) {
        return error;
    }
    if (!to->may_receive_from(*this)) {
        return -EPERM;
    }
    if (to->ended_) {
        return -EPIPE;
    }
    if (call.size() > own_machine.world.options.socket_buffer) {
        return -EMSGSIZE;
    }
    if (own_machine.world.fault(own_machine.world.options.faults.no_buffers, "ENOBUFS")) {
        return -ENOBUFS;
    }
    if (to != this && to->is_full_for(*this, call.size())) {
        to->block(*this);
        return would_wait;
    }
    datagram d = datagram_of(call);
    d.files = std::move(files);
    to->held_ += d.bytes.size();
    to->received_.push_back(std::move(d));
    to->changed(POLLIN | POLLRDNORM);
    return static_cast<int>(call.size());
}

} // namespace coil::sim::detail
