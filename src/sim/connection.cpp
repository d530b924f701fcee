// Data in flight on a stream, and the effects of the network on it: delay, silence and resets.

#include "machine.hpp"
#include "network.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace coil::sim::detail {

namespace {

constexpr std::int64_t again_ns = 200'000'000; // after this time, lost data is retransmitted

} // namespace

connection::connection(stream_socket& from, machine& to)
    : sides_{&from, nullptr}, machines_{&from.own_machine, &to},
      incarnations_{from.own_machine.incarnation, to.incarnation},
      instant_(from.family() == AF_UNIX), net_(from.own_machine.net) {
    for (direction& each : directions_) {
        each.last_sent = each.last_received = from.own_machine.world.now();
    }
    net_.add(*this);
}

connection::~connection() { net_.remove(*this); }

std::int64_t connection::since_sent_ns(unsigned side) const noexcept {
    return machines_[side]->world.now() - directions_[side].last_sent;
}

std::int64_t connection::since_received_ns(unsigned side) const noexcept {
    return machines_[side]->world.now() - directions_[1 - side].last_received;
}

std::size_t connection::room(unsigned side) const noexcept {
    const direction& w = directions_[side];
    const std::size_t used = w.data.size() + w.hidden;
    const std::size_t most = machines_[side]->world.options.socket_buffer;
    return used < most ? most - used : 0;
}

void connection::send(unsigned side, std::span<const ::iovec> parts, std::size_t skip,
                      std::size_t count) {
    for_each_part(parts, skip, count, [&](const std::byte* from, std::size_t n) {
        directions_[side].data.push(from, n);
    });
    directions_[side].sent += count;
    directions_[side].last_sent = machines_[side]->world.now();
    push(side, count, false);
}

void connection::carry(unsigned side, file_list files, std::size_t count) {
    direction& w = directions_[side];
    w.carried.push_back({w.sent, w.sent + count, std::move(files)});
}

std::size_t connection::before_more_files(unsigned side, std::size_t count) const noexcept {
    const direction& w = directions_[1 - side];
    if (w.carried.empty() || w.carried.front().begin >= w.received() + count) {
        return count;
    }
    return std::min<std::size_t>(count, w.carried.front().end - w.received());
}

file_list connection::files_within(unsigned side, std::size_t count, bool keep) {
    direction& w = directions_[1 - side];
    file_list files;
    if (!w.carried.empty() && w.carried.front().begin < w.received() + count) {
        files = w.carried.front().files;
        if (!keep) {
            w.carried.pop_front();
        }
    }
    return files;
}

void connection::finish(unsigned side) {
    if (!directions_[side].end_sent) {
        directions_[side].end_sent = true;
        push(side, 0, true);
    }
}

void connection::push(unsigned side, std::size_t bytes, bool end) {
    direction& w = directions_[side];
    machine& from = *machines_[side];
    if (instant_) {
        w.under_way.push_back({from.world.now(), bytes, end});
        arrive(side);
        return;
    }
    std::int64_t arrival = from.net.arrival(from, *machines_[1 - side], bytes + 40);
    if (from.world.random.chance(from.net.link(from, *machines_[1 - side]).loss)) {
        arrival += again_ns;
    }
    w.last_arrival = std::max(arrival, w.last_arrival);
    w.under_way.push_back({w.last_arrival, bytes, end});
    from.world.at(
        w.last_arrival, *this,
        [](object& about, std::uint64_t s, std::uint64_t) {
            of(about).arrive(static_cast<unsigned>(s));
        },
        side);
}

bool connection::is_cut() const noexcept {
    return machines_[0]->net.is_cut(*machines_[0], *machines_[1]);
}

/// Data sent by `side` arrives at the other side.
void connection::arrive(unsigned side) {
    direction& w = directions_[side];
    machine& to = *machines_[1 - side];
    if (w.under_way.empty() || w.stalled) {
        return;
    }
    if (!instant_ && (is_cut() || !to.up)) {
        stall(side);
        return;
    }
    bool came = false;
    bool bytes = false;
    while (!w.under_way.empty() && w.under_way.front().arrival <= to.world.now()) {
        const segment s = w.under_way.front();
        w.under_way.pop_front();
        w.arrived += s.bytes;
        w.end_arrived = w.end_arrived || s.end;
        ++w.progress;
        came = true;
        if (s.bytes > 0) {
            bytes = true;
            w.last_received = to.world.now();
        }
        to.world.trace.event(s.end ? "end arrives from" : "bytes arrive from", to.index,
                             machines_[side]->index, static_cast<std::int64_t>(s.bytes));
    }
    if (!came) {
        return;
    }
    if (stream_socket* const receiver = sides_[1 - side]; receiver != nullptr) {
        if (bytes && !instant_ && receiver->receiving_ended_ && receiver->sending_ended_) {
            reset(1 - side); // a socket closed in both directions accepts no data: tcp(7)
            receiver->failed(ECONNRESET);
            return;
        }
        receiver->changed(w.end_arrived ? stream_socket::any_event : POLLIN | POLLRDNORM);
    } else if (to.incarnation != incarnations_[1 - side] || (!open_[1 - side] && w.arrived > 0)) {
        reset(1 - side); // the receiver is gone
    }
}

/// The link is down: data is retransmitted until it arrives or the connection times out.
void connection::stall(unsigned side) {
    direction& w = directions_[side];
    w.stalled = true;
    machine& from = *machines_[side];
    from.world.trace.event("unanswered by", from.index, machines_[1 - side]->index);
    from.world.after(
        from.world.options.stream_timeout.count(), *this,
        [](object& about, std::uint64_t s, std::uint64_t progress) {
            connection& c = of(about);
            const direction& waiting = c.directions_[s];
            if (waiting.stalled && waiting.progress == progress && c.sides_[s] != nullptr) {
                c.sides_[s]->failed(ETIMEDOUT);
            }
        },
        side, w.progress);
    if (machines_[1 - side]->up) {
        return; // mend() wakes it
    }
    from.world.after(again_ns, *this,
                     [](object& about, std::uint64_t, std::uint64_t) { of(about).retry(); });
}

void connection::retry() {
    for (unsigned side = 0; side < 2; ++side) {
        direction& w = directions_[side];
        if (!w.stalled || is_cut()) {
            continue;
        }
        machine& from = *machines_[side];
        if (!machines_[1 - side]->up) {
            if (sides_[side] != nullptr) {
                from.world.after(
                    again_ns * 5, *this,
                    [](object& about, std::uint64_t, std::uint64_t) { of(about).retry(); });
            }
            continue;
        }
        w.stalled = false;
        const std::int64_t back_off = from.world.random.between(0, again_ns);
        from.world.after(
            back_off + from.net.link(from, *machines_[1 - side]).latency.count(), *this,
            [](object& about, std::uint64_t s, std::uint64_t) {
                of(about).arrive(static_cast<unsigned>(s));
            },
            side);
    }
}

void connection::fall_silent() {
    constexpr std::int64_t second_ns = 1'000'000'000;
    constexpr int two_hours = 7200; // tcp(7), tcp_keepalive_time
    for (unsigned side = 0; side < 2 && !instant_; ++side) {
        const stream_socket* const s = sides_[side];
        if (s != nullptr && s->option(SOL_SOCKET, SO_KEEPALIVE) != 0) {
            const int idle = s->option(IPPROTO_TCP, TCP_KEEPIDLE);
            machines_[side]->world.after(
                second_ns * (idle > 0 ? idle : two_hours), *this,
                [](object& about, std::uint64_t which, std::uint64_t) {
                    of(about).probe(static_cast<unsigned>(which), false);
                },
                side);
        }
    }
}

void connection::probe(unsigned side, bool last) {
    constexpr std::int64_t second_ns = 1'000'000'000;
    constexpr int interval_s = 75; // tcp(7), tcp_keepalive_intvl and tcp_keepalive_probes
    constexpr int probes = 9;
    stream_socket* const s = sides_[side];
    if (s == nullptr) {
        return;
    }
    const machine& to = *machines_[1 - side];
    if (!is_cut() && to.up) {
        if (to.incarnation != incarnations_[1 - side]) {
            s->failed(ECONNRESET);
        }
        return;
    }
    if (last) {
        s->failed(ETIMEDOUT);
        return;
    }
    const int interval = s->option(IPPROTO_TCP, TCP_KEEPINTVL);
    const int count = s->option(IPPROTO_TCP, TCP_KEEPCNT);
    s->own_machine.world.after(
        second_ns * (interval > 0 ? interval : interval_s) * (count > 0 ? count : probes), *this,
        [](object& about, std::uint64_t which, std::uint64_t) {
            of(about).probe(static_cast<unsigned>(which), true);
        },
        side);
}

void connection::forget(const machine& m) {
    for (unsigned side = 0; side < 2; ++side) {
        if (machines_[side] == &m) {
            abandon(side);
            fall_silent();
        }
    }
}

void connection::abandon(unsigned side) noexcept {
    sides_[side] = nullptr;
    open_[side] = false;
    directions_[side].under_way.clear();
    directions_[side].stalled = false;
}

void connection::drop(unsigned side, std::size_t count) {
    direction& w = directions_[1 - side];
    w.data.drop(count);
    w.arrived -= count;
    w.hidden += count;
    if (w.update_in_flight) {
        return;
    }
    if (instant_) {
        tell(1 - side);
        return;
    }
    machine& from = *machines_[side];
    if (w.data.size() + w.hidden <= from.world.options.socket_buffer / 2) {
        return; // a sender with enough space needs no update
    }
    w.update_in_flight = true;
    from.world.after(
        from.net.link(from, *machines_[1 - side]).latency.count(), *this,
        [](object& about, std::uint64_t s, std::uint64_t) {
            of(about).tell(static_cast<unsigned>(s));
        },
        1 - side);
}

/// Notifies `side` that there is space again.
void connection::tell(unsigned side) {
    direction& w = directions_[side];
    w.update_in_flight = false;
    w.hidden = 0;
    if (sides_[side] != nullptr) {
        sides_[side]->changed(POLLOUT | POLLWRNORM);
    }
}

void connection::close(unsigned side, bool at_once) {
    const std::deque<cargo> not_received = std::exchange(directions_[1 - side].carried, {});
    sides_[side] = nullptr;
    open_[side] = false;
    if (at_once || directions_[1 - side].arrived > 0) {
        directions_[1 - side].data.clear();
        directions_[1 - side].arrived = 0;
        reset(side);
    } else {
        finish(side);
    }
}

void connection::reset(unsigned side) {
    directions_[side].under_way.clear();
    directions_[side].end_sent = true;
    const auto happens = [](object& about, std::uint64_t s, std::uint64_t) {
        connection& c = of(about);
        if (!c.instant_ && (c.is_cut() || !c.machines_[s]->up)) {
            return;
        }
        if (c.sides_[s] == nullptr) {
            c.errors_[s] = ECONNRESET;
        }
        if (stream_socket* const receiver = c.sides_[s]) {
            receiver->own_machine.world.trace.event("reset by", receiver->own_machine.index,
                                                    c.machines_[1 - s]->index);
            receiver->failed(c.directions_[1 - s].end_arrived &&
                                     c.directions_[1 - s].arrived == 0 && !c.instant_
                                 ? EPIPE
                                 : ECONNRESET);
        }
    };
    if (instant_) {
        happens(*this, 1 - side, 0);
        return;
    }
    machine& from = *machines_[side];
    from.world.at(from.net.arrival(from, *machines_[1 - side], 40), *this, happens, 1 - side);
}

} // namespace coil::sim::detail
