// Streams of bytes between machines and inside of them: TCP without packets. A stream keeps its
// order and loses nothing; what the network does to it is time, silence and resets.

#include "stream.hpp"

#include "machine.hpp"
#include "network.hpp"

#include <algorithm>
#include <cerrno>

#include <netinet/tcp.h>

namespace coil::sim::detail {

namespace {

constexpr std::int64_t first_retry_ns = 1'000'000'000; // of a SYN: tcp(7), tcp_syn_retries
constexpr std::int64_t no_neighbour_ns = 3'000'000'000;
constexpr std::int64_t again_ns = 200'000'000; // what was lost is sent again

endpoint local_socket() {
    endpoint e;
    e.family = AF_UNIX;
    return e;
}

connection& as_connection(object& about) noexcept { return static_cast<connection&>(about); }

} // namespace

connection::connection(stream_socket& from, machine& to)
    : sides_{&from, nullptr}, homes_{&from.home, &to}, lives_{from.home.life, to.life},
      instant_(from.family() == AF_UNIX) {
    homes_[0]->net.add(*this);
}

connection::~connection() { homes_[0]->net.remove(*this); }

std::size_t connection::room(unsigned side) const noexcept {
    const way& w = ways_[side];
    const std::size_t used = w.data.size() + w.hidden;
    const std::size_t most = homes_[side]->world.options.socket_buffer;
    return used < most ? most - used : 0;
}

void connection::send(unsigned side, std::span<const ::iovec> parts, std::size_t skip,
                      std::size_t count) {
    for_each_part(parts, skip, count,
                  [&](const std::byte* from, std::size_t n) { ways_[side].data.push(from, n); });
    push(side, count, false);
}

void connection::finish(unsigned side) {
    if (!ways_[side].end_sent) {
        ways_[side].end_sent = true;
        push(side, 0, true);
    }
}

void connection::push(unsigned side, std::size_t bytes, bool end) {
    way& w = ways_[side];
    machine& from = *homes_[side];
    if (instant_) {
        w.under_way.push_back({from.world.now(), bytes, end});
        arrive(side);
        return;
    }
    std::int64_t arrival = from.net.arrival(from, *homes_[1 - side], bytes + 40);
    if (from.world.random.chance(from.net.link(from, *homes_[1 - side]).loss)) {
        arrival += again_ns;
    }
    w.last_arrival = std::max(arrival, w.last_arrival);
    w.under_way.push_back({w.last_arrival, bytes, end});
    from.world.at(
        w.last_arrival, *this,
        [](object& about, std::uint64_t s, std::uint64_t) {
            as_connection(about).arrive(static_cast<unsigned>(s));
        },
        side);
}

bool connection::is_cut() const noexcept { return homes_[0]->net.is_cut(*homes_[0], *homes_[1]); }

/// What `side` has sent reaches the other.
void connection::arrive(unsigned side) {
    way& w = ways_[side];
    machine& to = *homes_[1 - side];
    if (w.under_way.empty() || w.stalled) {
        return;
    }
    if (!instant_ && (is_cut() || !to.up)) {
        stall(side);
        return;
    }
    bool came = false;
    while (!w.under_way.empty() && w.under_way.front().arrival <= to.world.now()) {
        const segment s = w.under_way.front();
        w.under_way.pop_front();
        w.arrived += s.bytes;
        w.end_arrived = w.end_arrived || s.end;
        ++w.progress;
        came = true;
        to.world.trace.event(s.end ? "end arrives from" : "bytes arrive from", to.index,
                             homes_[side]->index, static_cast<std::int64_t>(s.bytes));
    }
    if (!came) {
        return;
    }
    if (stream_socket* const receiver = sides_[1 - side]; receiver != nullptr) {
        if (receiver->receiving_ended_ && w.arrived > 0) {
            drop(1 - side, w.arrived);
        }
        receiver->changed();
    } else if (to.life != lives_[1 - side] || (!open_[1 - side] && w.arrived > 0)) {
        // Nobody is there who would take it.
        w.data.clear();
        w.arrived = 0;
        reset(1 - side);
    }
}

/// Silence: what is sent is sent again until it arrives, or somebody has had enough.
void connection::stall(unsigned side) {
    way& w = ways_[side];
    w.stalled = true;
    machine& from = *homes_[side];
    from.world.trace.event("unanswered by", from.index, homes_[1 - side]->index);
    from.world.after(
        from.world.options.stream_timeout.count(), *this,
        [](object& about, std::uint64_t s, std::uint64_t progress) {
            connection& c = as_connection(about);
            const way& waiting = c.ways_[s];
            if (waiting.stalled && waiting.progress == progress && c.sides_[s] != nullptr) {
                c.sides_[s]->failed(ETIMEDOUT);
            }
        },
        side, w.progress);
    if (homes_[1 - side]->up) {
        return; // mend() wakes it
    }
    from.world.after(again_ns, *this, [](object& about, std::uint64_t, std::uint64_t) {
        as_connection(about).retry();
    });
}

void connection::retry() {
    for (unsigned side = 0; side < 2; ++side) {
        way& w = ways_[side];
        if (!w.stalled || is_cut()) {
            continue;
        }
        machine& from = *homes_[side];
        if (!homes_[1 - side]->up) {
            if (sides_[side] != nullptr) {
                from.world.after(again_ns * 5, *this,
                                 [](object& about, std::uint64_t, std::uint64_t) {
                                     as_connection(about).retry();
                                 });
            }
            continue;
        }
        w.stalled = false;
        const std::int64_t back_off = from.world.random.between(0, again_ns);
        from.world.after(
            back_off + from.net.link(from, *homes_[1 - side]).latency.count(), *this,
            [](object& about, std::uint64_t s, std::uint64_t) {
                as_connection(about).arrive(static_cast<unsigned>(s));
            },
            side);
    }
}

void connection::forget(const machine& m) noexcept {
    for (unsigned side = 0; side < 2; ++side) {
        if (homes_[side] == &m) {
            sides_[side] = nullptr;
            open_[side] = false;
            ways_[side].under_way.clear();
            ways_[side].stalled = false;
        }
    }
}

void connection::drop(unsigned side, std::size_t count) {
    way& w = ways_[1 - side];
    w.data.drop(count);
    w.arrived -= count;
    w.hidden += count;
    if (w.telling) {
        return;
    }
    if (instant_) {
        tell(1 - side);
        return;
    }
    machine& from = *homes_[side];
    if (w.data.size() + w.hidden <= from.world.options.socket_buffer / 2) {
        return; // who has room enough need not know of more
    }
    w.telling = true;
    from.world.after(
        from.net.link(from, *homes_[1 - side]).latency.count(), *this,
        [](object& about, std::uint64_t s, std::uint64_t) {
            as_connection(about).tell(static_cast<unsigned>(s));
        },
        1 - side);
}

/// `side` learns that there is room again.
void connection::tell(unsigned side) {
    way& w = ways_[side];
    w.telling = false;
    w.hidden = 0;
    if (sides_[side] != nullptr) {
        sides_[side]->changed();
    }
}

void connection::close(unsigned side, bool at_once) {
    sides_[side] = nullptr;
    open_[side] = false;
    if (at_once || ways_[1 - side].arrived > 0) {
        ways_[1 - side].data.clear();
        ways_[1 - side].arrived = 0;
        reset(side);
    } else {
        finish(side);
    }
}

void connection::reset(unsigned side) {
    ways_[side].under_way.clear();
    ways_[side].end_sent = true;
    const auto happens = [](object& about, std::uint64_t s, std::uint64_t) {
        connection& c = as_connection(about);
        if (!c.instant_ && (c.is_cut() || !c.homes_[s]->up)) {
            return;
        }
        if (c.sides_[s] == nullptr) {
            c.errors_[s] = ECONNRESET;
        }
        if (stream_socket* const receiver = c.sides_[s]) {
            receiver->home.world.trace.event("reset by", receiver->home.index,
                                             c.homes_[1 - s]->index);
            receiver->failed(c.ways_[1 - s].end_arrived && c.ways_[1 - s].arrived == 0 &&
                                     !c.instant_
                                 ? EPIPE
                                 : ECONNRESET);
        }
    };
    if (instant_) {
        happens(*this, 1 - side, 0);
        return;
    }
    machine& from = *homes_[side];
    from.world.at(from.net.arrival(from, *homes_[1 - side], 40), *this, happens, 1 - side);
}

// ---- the hand-shake
// ----------------------------------------------------------------------------

void connection::begin_connecting(const endpoint& to) {
    target_ = to;
    machine& from = *homes_[0];
    began_ = from.world.now();
    from.world.at(from.net.arrival(from, *homes_[1], 60), *this,
                  [](object& about, std::uint64_t tries, std::uint64_t) {
                      as_connection(about).syn(static_cast<unsigned>(tries));
                  });
}

void connection::syn(unsigned tries) {
    if (sides_[0] == nullptr) {
        return;
    }
    machine& from = *homes_[0];
    machine& to = *homes_[1];
    stream_socket* listener = nullptr;
    const bool reaches = !is_cut() && to.up;
    if (reaches) {
        lives_[1] = to.life;
        listener = to.find_listener(target_);
        if (listener == nullptr) {
            from.world.at(from.net.arrival(to, from, 40), *this,
                          [](object& about, std::uint64_t, std::uint64_t) {
                              as_connection(about).refuse(ECONNREFUSED);
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
                              as_connection(about).refuse(ETIMEDOUT);
                          });
            return;
        }
        from.world.after(
            wait, *this,
            [](object& about, std::uint64_t n, std::uint64_t) {
                as_connection(about).syn(static_cast<unsigned>(n));
            },
            tries + 1);
        return;
    }
    ++listener->promised_;
    const std::int64_t answered = from.net.arrival(to, from, 60);
    from.world.at(answered, *this, [](object& about, std::uint64_t, std::uint64_t) {
        as_connection(about).established();
    });
}

/// The answer has come to who asked; the other learns it a little later.
void connection::established() {
    machine& from = *homes_[0];
    machine& to = *homes_[1];
    stream_socket* const socket = sides_[0];
    open_[1] = true;
    if (socket != nullptr) {
        socket->connected(socket->local(), target_);
    }
    from.world.at(
        from.net.arrival(from, to, 40), *this, [](object& about, std::uint64_t, std::uint64_t) {
            connection& c = as_connection(about);
            machine& server = *c.homes_[1];
            stream_socket* const listener =
                server.up && server.life == c.lives_[1] ? server.find_listener(c.target_) : nullptr;
            if (listener == nullptr) {
                c.reset(1);
                return;
            }
            listener->promised_ -= listener->promised_ > 0 ? 1 : 0;
            listener->offer(c);
        });
}

void connection::refuse(int error) {
    if (sides_[0] != nullptr) {
        sides_[0]->failed(error);
    }
}

// ---- the socket
// --------------------------------------------------------------------------------

stream_socket::~stream_socket() {
    home.forget_names(*this);
    if (!home.up) {
        return; // its machine is without power: nothing leaves it
    }
    for (const ref<connection>& c : offered_) {
        c->close(1, true);
    }
    if (connection_ && state_ != state::dead) {
        connection_->close(side_, resets_at_close());
    } else if (connection_) {
        connection_->attach(side_, nullptr);
    }
}

void stream_socket::join(stream_socket& a, stream_socket& b) {
    auto c = make<connection>(a, b.home);
    c->attach(1, &b);
    c->open_[1] = true;
    a.connection_ = c;
    b.connection_ = c;
    b.side_ = 1;
    a.connected(local_socket(), local_socket());
    b.connected(local_socket(), local_socket());
}

int stream_socket::attempt(op& call) { return socket_file::attempt(call); }

std::uint32_t stream_socket::events() {
    std::uint32_t all = error_ != 0 ? POLLERR : 0;
    switch (state_) {
    case state::listening:
        return all | (offered_.empty() ? 0U : static_cast<unsigned>(POLLIN | POLLRDNORM));
    case state::fresh:
        return all | POLLOUT | POLLWRNORM | POLLHUP;
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
    if (ended && sending_ended_) {
        all |= POLLHUP;
    }
    const std::size_t most = home.world.options.socket_buffer;
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
    local_ = local;
    peer_ = to;
    changed();
}

void stream_socket::failed(int error) {
    if (state_ == state::dead) {
        return;
    }
    if (state_ == state::connecting) {
        // It may be tried again.
        connection_ = {};
        state_ = state::fresh;
        error_ = error;
        changed();
        return;
    }
    state_ = state::dead;
    error_ = error;
    changed();
}

int stream_socket::bind(const endpoint& to) {
    return bound_ || state_ != state::fresh ? -EINVAL : take_name(to);
}

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
    if (home.has_other_listener(*this)) {
        return -EADDRINUSE;
    }
    state_ = state::listening;
    backlog_ = static_cast<unsigned>(std::clamp(backlog, 0, 4096));
    return 0;
}

bool stream_socket::is_full() const noexcept { return offered_.size() + promised_ > backlog_; }

void stream_socket::offer(connection& c) {
    offered_.push_back(ref<connection>(&c));
    changed();
}

int stream_socket::accept(op& call) {
    if (state_ != state::listening ||
        (call.entry.accept_flags & ~unsigned{SOCK_NONBLOCK | SOCK_CLOEXEC}) != 0) {
        return -EINVAL;
    }
    if (offered_.empty()) {
        return would_wait;
    }
    if (const int error = home.descriptor_fault(); error != 0) {
        return error;
    }
    auto accepted = make<stream_socket>(home, family());
    accepted->nonblocking = (call.entry.accept_flags & SOCK_NONBLOCK) != 0;
    const int fd = home.open(ref<file>(accepted.get()));
    if (fd < 0) {
        return fd;
    }
    const ref<connection> c = offered_.front();
    offered_.pop_front();
    accepted->connection_ = c;
    accepted->side_ = 1;
    c->attach(1, accepted.get());
    endpoint there;
    there.family = family();
    if (stream_socket* const other = c->socket(0)) {
        there = other->local_;
    } else {
        there = c->target_; // it has gone already
    }
    accepted->connected(family() == AF_UNIX ? local_ : c->target_, there);
    if (family() != AF_UNIX) {
        accepted->peer_ = there;
    }
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
    const bool mine = call.done != nullptr && *call.done != 0;
    switch (state_) {
    case state::fresh:
        if (mine || error_ != 0) {
            return take_error(); // it was refused
        }
        break;
    case state::connecting:
        return mine ? would_wait : -EALREADY;
    case state::connected:
        return mine ? 0 : -EISCONN;
    case state::dead:
        return mine && error_ != 0 ? take_error() : mine ? 0 : -EISCONN;
    case state::listening:
        return -EISCONN;
    }
    if (to.family != family()) {
        return to.family == AF_UNSPEC ? 0 : -EAFNOSUPPORT;
    }
    if (home.world.fault(home.world.options.faults.no_buffers, "ENOBUFS")) {
        return -ENOBUFS;
    }
    if (family() == AF_UNIX) {
        int error = 0;
        stream_socket* const listener = home.find_local_listener(to, error);
        if (listener == nullptr) {
            return error;
        }
        if (listener->offered_.size() > listener->backlog_) {
            return -EAGAIN;
        }
        auto c = make<connection>(*this, home);
        c->target_ = listener->local_;
        connection_ = c;
        c->open_[1] = true;
        connected(local_.family == AF_UNIX ? local_ : local_socket(), to);
        listener->offer(*c);
        return 0;
    }
    if (const int error = bind_somewhere(); error != 0) {
        return error;
    }
    machine* const target = home.net.find(home, to);
    if (local_.is_any()) {
        local_ = home.address_towards(to, local_.port);
    }
    state_ = state::connecting;
    auto c = make<connection>(*this, target != nullptr ? *target : home);
    connection_ = c;
    if (call.done != nullptr) {
        *call.done = 1;
    }
    if (target == nullptr) {
        home.world.after(no_neighbour_ns, *c, [](object& about, std::uint64_t, std::uint64_t) {
            as_connection(about).refuse(EHOSTUNREACH);
        });
    } else {
        endpoint there = to;
        if (there.is_any()) {
            there.ip = local_.ip;
        }
        c->begin_connecting(there);
    }
    return would_wait;
}

int stream_socket::send(op& call, int flags) {
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
        return family() == AF_UNIX ? -ENOTCONN : -EPIPE;
    }
    if (call.header != nullptr && call.header->msg_name != nullptr &&
        call.header->msg_namelen != 0 && family() == AF_UNIX) {
        return -EISCONN;
    }
    if (family() == AF_UNIX && connection_->socket(1 - side_) == nullptr &&
        connection_->has_ended(side_)) {
        return -EPIPE;
    }
    if (home.world.fault(home.world.options.faults.lost_connection, "a connection is lost")) {
        connection_->reset(side_);
        failed(ECONNRESET);
        return take_error();
    }
    if (home.world.fault(home.world.options.faults.no_buffers, "ENOBUFS")) {
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
        home.world.fault(home.world.options.faults.short_transfer, "a short send")) {
        count = static_cast<std::size_t>(
            home.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    connection_->send(side_, call.data, moved, count);
    return static_cast<int>(count);
}

int stream_socket::receive(op& call, int flags) {
    if (state_ == state::connecting) {
        return would_wait;
    }
    if (state_ == state::fresh || state_ == state::listening) {
        return family() == AF_UNIX ? -EINVAL : -ENOTCONN;
    }
    const std::size_t moved = call.done != nullptr ? *call.done : 0;
    const std::size_t there = connection_->readable(side_);
    if (there == 0) {
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
        home.world.fault(home.world.options.faults.short_transfer, "a short receive")) {
        count = static_cast<std::size_t>(
            home.world.random.between(1, static_cast<std::int64_t>(count) - 1));
    }
    std::size_t offset = 0;
    for_each_part(call.data, moved, count, [&](std::byte* to, std::size_t n) {
        connection_->peek(side_, to, n, offset);
        offset += n;
    });
    if ((flags & MSG_PEEK) == 0) {
        connection_->drop(side_, count);
    }
    if (call.header != nullptr) {
        call.header->msg_namelen = 0;
        call.header->msg_flags = 0;
    }
    return static_cast<int>(count);
}

int stream_socket::shutdown(int how) {
    if (how < SHUT_RD || how > SHUT_RDWR) {
        return -EINVAL;
    }
    if (state_ == state::listening && how != SHUT_WR) {
        state_ = state::fresh;
        for (const ref<connection>& c : offered_) {
            c->close(1, true);
        }
        offered_.clear();
        changed();
        return 0;
    }
    if (state_ != state::connected) {
        return -ENOTCONN;
    }
    if (how != SHUT_WR) {
        receiving_ended_ = true;
    }
    if (how != SHUT_RD && !sending_ended_) {
        sending_ended_ = true;
        connection_->finish(side_);
    }
    changed();
    return 0;
}

} // namespace coil::sim::detail
