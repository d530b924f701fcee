// How connections are established.

#include "machine.hpp"
#include "network.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace coil::sim::detail {

namespace {

constexpr std::int64_t first_retry_ns = 1'000'000'000; // for a SYN: tcp(7), tcp_syn_retries
constexpr std::int64_t no_neighbour_ns = 3'000'000'000;

} // namespace

void connection::begin_connecting(const endpoint& to) {
    target_ = to;
    machine& from = *machines_[0];
    began_ = from.world.now();
    from.world.at(from.net.arrival(from, *machines_[1], 60), *this,
                  [](object& about, std::uint64_t tries, std::uint64_t) {
                      connection::of(about).syn(static_cast<unsigned>(tries));
                  });
}

void connection::syn(unsigned tries) {
    if (sides_[0] == nullptr) {
        return;
    }
    machine& from = *machines_[0];
    machine& to = *machines_[1];
    stream_socket* listener = nullptr;
    const bool reaches = !is_cut() && to.up;
    if (reaches) {
        incarnations_[1] = to.incarnation;
        listener = to.find_listener(target_);
        if (listener == nullptr) {
            from.world.at(from.net.arrival(to, from, 40), *this,
                          [](object& about, std::uint64_t, std::uint64_t) {
                              connection::of(about).refuse(ECONNREFUSED);
                          });
            return;
        }
    }
    if (listener == nullptr || listener->is_full()) {
        const std::int64_t wait = first_retry_ns << std::min(tries, 6U);
        const std::int64_t end = began_ + from.world.options.connect_timeout.count();
        if (from.world.now() + wait >= end) {
            from.world.at(std::max(end, from.world.now()), *this,
                          [](object& about, std::uint64_t, std::uint64_t) {
                              connection::of(about).refuse(ETIMEDOUT);
                          });
            return;
        }
        from.world.after(
            wait, *this,
            [](object& about, std::uint64_t n, std::uint64_t) {
                connection::of(about).syn(static_cast<unsigned>(n));
            },
            tries + 1);
        return;
    }
    listener_ = listener;
    listener->half_open_.push_back(ref<connection>(this));
    const std::int64_t answered = from.net.arrival(to, from, 60);
    from.world.at(answered, *this, [](object& about, std::uint64_t, std::uint64_t) {
        connection::of(about).established();
    });
}

/// The answer has reached the connecting side; the accepting side learns of it a little later.
void connection::established() {
    machine& from = *machines_[0];
    machine& to = *machines_[1];
    stream_socket* const socket = sides_[0];
    open_[1] = true;
    if (socket != nullptr) {
        socket->connected(socket->local(), target_);
    }
    from.world.at(
        from.net.arrival(from, to, 40), *this,
        [](object& about, std::uint64_t, std::uint64_t) { connection::of(about).acknowledged(); });
}

/// The listener is the one that answered, even if others have the same port.
void connection::acknowledged() {
    if (stream_socket* const listener = std::exchange(listener_, nullptr)) {
        std::erase(listener->half_open_, ref<connection>(this));
        listener->offer(*this);
    } else if (machines_[1]->up) {
        reset(1);
    }
}

void connection::refuse(int error) {
    if (sides_[0] != nullptr) {
        sides_[0]->failed(error);
    }
}

// ---- the sockets' part of the handshake

int stream_socket::listen(int backlog) {
    if (state_ == state::listening) {
        backlog_ = static_cast<unsigned>(std::clamp(backlog, 0, 4096));
        return 0;
    }
    if (state_ != state::fresh) {
        return -EINVAL;
    }
    if (family() == AF_UNIX && !bound_) {
        return -EINVAL;
    }
    if (const int error = bind_somewhere(); error != 0) {
        return error;
    }
    if (own_machine.has_other_listener(*this)) {
        return -EADDRINUSE;
    }
    state_ = state::listening;
    over_ = false;
    backlog_ = static_cast<unsigned>(std::clamp(backlog, 0, 4096));
    return 0;
}

bool stream_socket::is_full() const noexcept {
    return offered_.size() + half_open_.size() > backlog_;
}

void stream_socket::offer(connection& c) {
    offered_.push_back(ref<connection>(&c));
    changed();
}

/// The listener is closing: pending connections are reset.
void stream_socket::refuse_offered() {
    for (const ref<connection>& c : half_open_) {
        c->listener_ = nullptr;
    }
    half_open_.clear();
    if (own_machine.up) { // otherwise nothing can be sent
        for (const ref<connection>& c : offered_) {
            c->close(1, true);
        }
    }
    offered_.clear();
}

int stream_socket::accept(op& call) {
    if (state_ != state::listening ||
        (call.entry.accept_flags & ~unsigned{SOCK_NONBLOCK | SOCK_CLOEXEC}) != 0) {
        return -EINVAL;
    }
    if (offered_.empty()) {
        return receiving_ended_ ? -EINVAL : would_wait;
    }
    if (const int error = own_machine.descriptor_fault(); error != 0) {
        return error;
    }
    auto accepted = make<stream_socket>(own_machine, family());
    accepted->nonblocking = (call.entry.accept_flags & SOCK_NONBLOCK) != 0;
    const int fd = own_machine.open(ref<file>(accepted.get()));
    if (fd < 0) {
        return fd;
    }
    const ref<connection> c = offered_.front();
    offered_.pop_front();
    own_machine.wake_local_connects();
    accepted->connection_ = c;
    accepted->side_ = 1;
    c->attach(1, accepted.get());
    const endpoint there = accepted->as_seen(c->origin_);
    accepted->connected(c->target_, there);
    if (c->errors_[1] != 0) {
        accepted->failed(c->errors_[1]);
    }
    auto* const address = reinterpret_cast<void*>(call.entry.addr);
    auto* const length = reinterpret_cast<::socklen_t*>(call.entry.addr2);
    if (address != nullptr && length != nullptr) {
        there.write(address, *length);
    }
    return fd;
}

int stream_socket::connect(op& call, const endpoint& to) {
    const bool mine = call.begun != nullptr && *call.begun;
    switch (state_) {
    case state::fresh:
        if (mine || error_ != 0) {
            return take_error(); // the handshake was refused
        }
        break;
    case state::connecting:
        return mine ? would_wait : -EALREADY;
    case state::connected:
        // The first call after the handshake gets its result, even if it is not the call that
        // began it.
        return std::exchange(connected_unreported_, false) || mine ? 0 : -EISCONN;
    case state::dead:
        return mine && error_ != 0 ? take_error() : mine ? 0 : -EISCONN;
    case state::listening:
        return -EISCONN;
    }
    if (to.family != family()) {
        return to.family == AF_UNSPEC ? 0 : -EAFNOSUPPORT;
    }
    if (own_machine.world.fault(own_machine.world.options.faults.no_buffers, "ENOBUFS")) {
        return -ENOBUFS;
    }
    return family() == AF_UNIX ? connect_local(to) : connect_over_network(call, to);
}

int stream_socket::connect_local(const endpoint& to) {
    int error = 0;
    stream_socket* const listener = own_machine.find_local_listener(to, error);
    if (listener == nullptr) {
        return error;
    }
    if (listener->receiving_ended_) {
        return -ECONNREFUSED;
    }
    if (listener->offered_.size() > listener->backlog_) {
        if (nonblocking) {
            return -EAGAIN;
        }
        own_machine.add_local_connect(*this);
        return would_wait;
    }
    auto c = make<connection>(*this, own_machine);
    c->origin_ = local_.family == AF_UNIX ? local_ : endpoint::nameless();
    c->target_ = listener->local_;
    connection_ = c;
    c->open_[1] = true;
    connected(c->origin_, to);
    listener->offer(*c);
    return 0;
}

/// Begins the handshake.
int stream_socket::connect_over_network(op& call, const endpoint& wanted) {
    if (const int error = bind_somewhere(); error != 0) {
        return error;
    }
    const endpoint to = takes_ipv4() ? wanted.unmapped() : wanted;
    machine* const target = own_machine.net.find(own_machine, to);
    if (local_.is_any()) {
        local_ = as_seen(own_machine.address_towards(to, local_.port));
    }
    state_ = state::connecting;
    over_ = false;
    connected_unreported_ = true;
    auto c = make<connection>(*this, target != nullptr ? *target : own_machine);
    c->origin_ = local_.unmapped();
    connection_ = c;
    if (call.begun != nullptr) {
        *call.begun = true;
    }
    if (target == nullptr) {
        own_machine.world.after(no_neighbour_ns, *c,
                                [](object& about, std::uint64_t, std::uint64_t) {
                                    connection::of(about).refuse(EHOSTUNREACH);
                                });
    } else {
        endpoint there = to;
        if (there.is_any()) {
            there.ip = c->origin_.ip;
        }
        c->begin_connecting(there);
    }
    return would_wait;
}

} // namespace coil::sim::detail
