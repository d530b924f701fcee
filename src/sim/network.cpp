#include "network.hpp"

#include "machine.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cmath>

namespace coil::sim::detail {

namespace {

/// The link of a machine to itself.
constexpr link_options loopback{.latency = std::chrono::microseconds(5),
                                .jitter = std::chrono::microseconds(5),
                                .bytes_per_second = 10'000'000'000};

} // namespace

void network::add(machine& m) {
    machines_.push_back(&m);
    for (auto& row : wires_) {
        row.push_back({.options = world_.options.link});
    }
    wires_.emplace_back();
    for (std::size_t i = 0; i < machines_.size(); ++i) {
        wires_.back().push_back({.options = world_.options.link});
    }
    wires_.back().back().options = loopback;
}

machine* network::find(const machine& from, const endpoint& address) const noexcept {
    if (address.is_any() || address.is_loopback()) {
        return machines_[from.index];
    }
    for (machine* const m : machines_) {
        if (m->owns(address)) {
            return m;
        }
    }
    return nullptr;
}

const network::wire& network::between(const machine& a, const machine& b) const noexcept {
    return wires_[a.index][b.index];
}
network::wire& network::between(const machine& a, const machine& b) noexcept {
    return wires_[a.index][b.index];
}

const link_options& network::link(const machine& a, const machine& b) const noexcept {
    return between(a, b).options;
}

bool network::is_cut(const machine& a, const machine& b) const noexcept {
    return between(a, b).cut;
}

std::int64_t network::arrival(const machine& from, const machine& to, std::size_t bytes) {
    wire& w = between(from, to);
    const std::int64_t begin = std::max(world_.now(), w.free_at);
    if (w.options.bytes_per_second > 0) {
        w.free_at =
            begin + static_cast<std::int64_t>(static_cast<double>(bytes) * 1e9 /
                                              static_cast<double>(w.options.bytes_per_second));
    }
    return std::max(begin, w.free_at) + w.options.latency.count() +
           world_.random.between(0, w.options.jitter.count());
}

void network::set_link(const machine& a, const machine& b, const link_options& options) {
    between(a, b).options = options;
    between(b, a).options = options;
}

void network::cut(const machine& a, const machine& b) {
    between(a, b).cut = between(b, a).cut = true;
    for (connection* const c : connections_) {
        if (c->is_cut()) {
            c->fall_silent();
        }
    }
}

void network::mend(const machine& a, const machine& b) {
    between(a, b).cut = between(b, a).cut = false;
    const std::vector<connection*> all = connections_;
    for (connection* const c : all) {
        c->retry();
    }
}

void network::remove(connection& c) noexcept {
    const auto found = std::find(connections_.begin(), connections_.end(), &c);
    if (found != connections_.end()) {
        connections_.erase(found);
    }
}

void network::forget_connections(const machine& m) {
    for (connection* const c : connections_) {
        c->forget(m);
    }
}

} // namespace coil::sim::detail
