#pragma once

#include "endpoint.hpp"
#include "engine.hpp"
#include "object.hpp"

#include <coil/sim/options.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace coil::sim::detail {

class connection;
class machine;

/// What lies between the machines.
class network {
public:
    explicit network(engine& world) noexcept : world_(world) {}

    void add(machine& m);
    /// Who has this address, seen from `from`; null: nobody.
    [[nodiscard]] machine* find(const machine& from, const endpoint& address) const noexcept;

    /// When `bytes` that leave `from` now arrive at `to`.
    [[nodiscard]] std::int64_t arrival(const machine& from, const machine& to, std::size_t bytes);
    [[nodiscard]] bool is_cut(const machine& a, const machine& b) const noexcept;
    [[nodiscard]] const link_options& link(const machine& a, const machine& b) const noexcept;

    void set_link(const machine& a, const machine& b, const link_options& options);
    void cut(const machine& a, const machine& b);
    void mend(const machine& a, const machine& b);

    void add(connection& c) { connections_.push_back(&c); }
    void remove(connection& c) noexcept;
    /// Those of `m`, which has lost all memory of them.
    void forget_connections(const machine& m);

private:
    struct wire {
        link_options options;
        std::int64_t free_at = 0; // one way
        bool cut = false;
    };
    [[nodiscard]] const wire& between(const machine& a, const machine& b) const noexcept;
    [[nodiscard]] wire& between(const machine& a, const machine& b) noexcept;

    engine& world_;
    std::vector<machine*> machines_;
    std::vector<std::vector<wire>> wires_; // from, to
    std::vector<connection*> connections_;
};

} // namespace coil::sim::detail
