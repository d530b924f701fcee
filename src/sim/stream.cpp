// Stream sockets: TCP without packets, and AF_UNIX. A stream is ordered and reliable.

#include "stream.hpp"

#include "machine.hpp"

#include <algorithm>
#include <cerrno>

namespace coil::sim::detail {

stream_socket::~stream_socket() {
    own_machine.forget_names(*this);
    refuse_offered();
    own_machine.forget_local_connect(*this);
    if (!own_machine.up) {
        return; // nothing can be sent
    }
    own_machine.wake_local_connects();
    if (connection_ && state_ != state::dead) {
        connection_->close(side_, resets_at_close());
    } else if (connection_) {
        connection_->attach(side_, nullptr);
    }
}

void stream_socket::join(stream_socket& a, stream_socket& b) {
    auto c = make<connection>(a, b.own_machine);
    c->attach(1, &b);
    c->open_[1] = true;
    a.connection_ = c;
    b.connection_ = c;
    b.side_ = 1;
    a.connected(endpoint::nameless(), endpoint::nameless());
    b.connected(endpoint::nameless(), endpoint::nameless());
}

int stream_socket::attempt(op& call) { return socket_file::attempt(call); }

std::uint32_t stream_socket::events() {
    std::uint32_t all = error_ != 0 ? POLLERR : 0;
    switch (state_) {
    case state::listening:
        all |= receiving_ended_ ? POLLIN | POLLRDNORM | POLLRDHUP : 0U;
        all |= receiving_ended_ && sending_ended_ ? POLLHUP : 0U;
        return all | (offered_.empty() ? 0U : static_cast<unsigned>(POLLIN | POLLRDNORM));
    case state::fresh:
        all |= POLLOUT | POLLWRNORM | POLLHUP;
        return over_ ? all | POLLIN | POLLRDNORM | POLLRDHUP : all;
    case state::dead:
        return all | POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLHUP | POLLRDHUP;
    case state::connecting:
        return all;
    case state::connected:
        break;
    }
    const bool ended = connection_->has_ended(side_) || receiving_ended_;
    if (connection_->readable(side_) > 0 || ended) {
        all |= POLLIN | POLLRDNORM;
    }
    if (ended) {
        all |= POLLRDHUP;
    }
    // Unlike TCP, a Unix socket whose peer is closed has ended in both directions.
    const bool has_gone = family() == AF_UNIX && connection_->has_ended(side_) &&
                          connection_->socket(1 - side_) == nullptr;
    if (ended && (sending_ended_ || has_gone)) {
        all |= POLLHUP;
    }
    const std::size_t most = own_machine.world.options.socket_buffer;
    if (sending_ended_ || connection_->room(side_) > most / 3) {
        all |= POLLOUT | POLLWRNORM;
    }
    return all;
}

void stream_socket::connected(const endpoint& local, const endpoint& to) {
    if (state_ == state::dead) {
        return;
    }
    state_ = state::connected;
    local_ = as_seen(local);
    peer_ = as_seen(to);
    changed();
}

void stream_socket::failed(int error) {
    if (state_ == state::dead) {
        return;
    }
    if (state_ == state::connecting) {
        // Another connect() is permitted.
        connection_->attach(side_, nullptr);
        connection_ = {};
        state_ = state::fresh;
        connected_unreported_ = false;
        over_ = true;
        error_ = error;
        changed();
        return;
    }
    state_ = state::dead;
    error_ = error;
    connection_->abandon(side_);
    changed();
}

int stream_socket::bind(const endpoint& to) {
    return bind_once(to, bound_ || state_ != state::fresh);
}

/// The checks of unix(7) before a message is sent: 0 or -errno.
int stream_socket::check_local_send(const op& call, file_list& files) const {
    if (call.header != nullptr) {
        if (const int error = take_files(own_machine, *call.header, files); error != 0) {
            return error;
        }
    }
    const bool is_connected = state_ == state::connected || state_ == state::dead;
    endpoint target;
    if (const int named = named_target(call, target); named != 0) {
        return is_connected ? -EISCONN : -EOPNOTSUPP;
    }
    if (!is_connected) {
        return -ENOTCONN;
    }
    const bool has_gone = state_ == state::dead || (connection_->socket(1 - side_) == nullptr &&
                                                    connection_->has_ended(side_));
    return sending_ended_ || has_gone ? -EPIPE : 0;
}

int stream_socket::send(op& call, int flags) {
    file_list files;
    if (family() == AF_UNIX && state_ != state::connecting) {
        if (const int error = check_local_send(call, files); error != 0) {
            return error;
        }
    }
    if (sending_ended_) {
        return -EPIPE;
    }
    switch (state_) {
    case state::connecting:
        return would_wait;
    case state::connected:
        break;
    case state::dead:
        return error_ != 0 ? take_error() : -EPIPE;
    default:
        return -EPIPE;
    }
    if (own_machine.world.fault(own_machine.world.options.faults.lost_connection,
                                "a connection is lost")) {
        connection_->reset(side_);
        failed(ECONNRESET);
        return take_error();
    }
    if (own_machine.world.fault(own_machine.world.options.faults.no_buffers, "ENOBUFS")) {
        return -ENOBUFS;
    }
    const std::size_t moved = call.done != nullptr ? *call.done : 0;
    const std::size_t size = call.size() - std::min(call.size(), moved);
    if (size == 0) {
        return 0;
    }
    const std::size_t room = connection_->room(side_);
    if (room == 0) {
        return would_wait;
    }
    std::size_t count = std::min(room, size);
    if (count > 1 && (flags & MSG_WAITALL) == 0 &&
        own_machine.world.fault(own_machine.world.options.faults.short_transfer, "a short send")) {
        count = static_cast<std::size_t>(
            own_machine.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    if (!files.empty() && moved == 0) {
        connection_->carry(side_, std::move(files), count);
    }
    connection_->send(side_, call.data, moved, count);
    return static_cast<int>(count);
}

int stream_socket::receive(op& call, int flags) {
    if (call.header != nullptr) {
        call.header->msg_namelen = 0; // a connection's messages do not name their sender
    }
    if (state_ == state::connecting) {
        return would_wait;
    }
    if (state_ == state::fresh && over_) {
        return 0;
    }
    if (state_ == state::fresh || state_ == state::listening) {
        return family() == AF_UNIX ? -EINVAL : -ENOTCONN;
    }
    const std::size_t moved = call.done != nullptr ? *call.done : 0;
    const std::size_t there = connection_->readable(side_);
    if (there == 0) {
        if (state_ == state::dead && family() != AF_UNIX && connection_->has_ended(side_)) {
            return 0; // the end came before the error, which the next send or SO_ERROR reports
        }
        if (state_ == state::dead) {
            return error_ != 0 ? take_error() : 0;
        }
        return receiving_ended_ || connection_->at_end(side_) ? 0 : would_wait;
    }
    if (call.chooser != nullptr) {
        if (const int error = call.chooser->choose(call); error != 0) {
            return error;
        }
    }
    std::size_t count = std::min(there, call.size() - std::min(call.size(), moved));
    if (count > 1 && (flags & (MSG_WAITALL | MSG_PEEK)) == 0 &&
        own_machine.world.fault(own_machine.world.options.faults.short_transfer,
                                "a short receive")) {
        count = static_cast<std::size_t>(
            own_machine.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    count = connection_->before_more_files(side_, count);
    std::size_t offset = 0;
    for_each_part(call.data, moved, count, [&](std::byte* to, std::size_t n) {
        connection_->peek(side_, to, n, offset);
        offset += n;
    });
    const file_list files = connection_->files_within(side_, count, (flags & MSG_PEEK) != 0);
    if ((flags & MSG_PEEK) == 0) {
        connection_->drop(side_, count);
    }
    if (call.header != nullptr) {
        call.header->msg_namelen = 0;
        call.header->msg_flags = 0;
        if (moved == 0 || !files.empty()) {
            put_files(own_machine, files, *call.header);
        }
    }
    return static_cast<int>(count);
}

int stream_socket::describe(::tcp_info& info) const noexcept {
    if (family() == AF_UNIX) {
        return -EOPNOTSUPP;
    }
    constexpr std::int64_t ms = 1'000'000;
    switch (state_) {
    case state::listening:
        info.tcpi_state = TCP_LISTEN;
        break;
    case state::connecting:
        info.tcpi_state = TCP_SYN_SENT;
        break;
    case state::fresh:
    case state::dead:
        info.tcpi_state = TCP_CLOSE;
        break;
    case state::connected:
        info.tcpi_state = sending_ended_                  ? TCP_FIN_WAIT1
                          : connection_->has_ended(side_) ? TCP_CLOSE_WAIT
                                                          : TCP_ESTABLISHED;
        break;
    }
    if (connection_) {
        info.tcpi_last_data_sent =
            static_cast<std::uint32_t>(connection_->since_sent_ns(side_) / ms);
        info.tcpi_last_data_recv =
            static_cast<std::uint32_t>(connection_->since_received_ns(side_) / ms);
    }
    return 0;
}

int stream_socket::shutdown(int how) {
    if (how < SHUT_RD || how > SHUT_RDWR) {
        return -EINVAL;
    }
    if (state_ == state::listening && family() == AF_UNIX) {
        end_directions(how != SHUT_WR, how != SHUT_RD);
        own_machine.wake_local_connects();
        return 0;
    }
    if (state_ == state::listening) {
        if (how != SHUT_WR) {
            state_ = state::fresh;
            refuse_offered();
            changed();
        }
        return 0;
    }
    if (state_ == state::connecting) {
        failed(ECONNRESET);
        return 0;
    }
    if (family() == AF_UNIX) {
        return shutdown_local(how);
    }
    if (state_ != state::connected || connection_->is_over()) {
        return -ENOTCONN;
    }
    end_directions(how != SHUT_WR, how != SHUT_RD);
    return 0;
}

/// On an AF_UNIX socket, shutdown always succeeds, and SHUT_RD also ends the sending of the other
/// end.
int stream_socket::shutdown_local(int how) {
    end_directions(how != SHUT_WR, how != SHUT_RD);
    stream_socket* const other = connection_ ? connection_->socket(1 - side_) : nullptr;
    if (other != nullptr && how != SHUT_WR) {
        other->end_directions(false, true);
    }
    return 0;
}

void stream_socket::end_directions(bool receiving, bool sending) {
    receiving_ended_ = receiving_ended_ || receiving;
    if (sending && !sending_ended_) {
        sending_ended_ = true;
        if (connection_) {
            connection_->finish(side_);
        }
    }
    changed();
}

} // namespace coil::sim::detail
