#pragma once

#include "endpoint.hpp"
#include "event_scheduler.hpp"
#include "object.hpp"

#include <coil/sim/options.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace coil::sim::detail {

class connection;
class machine;

/// The network between the machines.
class network {
public:
    explicit network(event_scheduler& world) noexcept : world_(world) {}

    void add(machine& m);
    /// The machine with this address, as seen from `from`, or null.
    [[nodiscard]] machine* find(const machine& from, const endpoint& address) const noexcept;

    [[nodiscard]] std::span<machine* const> machines() const noexcept { return machines_; }

    /// The time at which `bytes` sent now by `from` arrive at `to`.
    [[nodiscard]] std::int64_t arrival(const machine& from, const machine& to, std::size_t bytes);
    [[nodiscard]] bool is_cut(const machine& a, const machine& b) const noexcept;
    [[nodiscard]] const link_options& link(const machine& a, const machine& b) const noexcept;

    void set_link(const machine& a, const machine& b, const link_options& options);
    void cut(const machine& a, const machine& b);
    void mend(const machine& a, const machine& b);

    void add(connection& c) { connections_.push_back(&c); }
    void remove(connection& c) noexcept;
    /// Forgets the connections of `m`, which has crashed.
    void forget_connections(const machine& m);

private:
    struct wire {
        link_options options;
        std::int64_t free_at = 0; // when this direction can send the next bytes
        bool cut = false;
    };
    [[nodiscard]] const wire& between(const machine& a, const machine& b) const noexcept;
    [[nodiscard]] wire& between(const machine& a, const machine& b) noexcept;

    event_scheduler& world_;
    std::vector<machine*> machines_;
    std::vector<std::vector<wire>> wires_; // indexed by sender and receiver
    std::vector<connection*> connections_;
};

} // namespace coil::sim::detail
