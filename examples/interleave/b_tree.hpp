// A static B-tree without pointers. A node is two adjacent cache lines, which the processor fetches
// together, so each level costs one cache miss.
#pragma once

#include <coil/interleave/lookup.hpp>
#include <coil/interleave/prefetch.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace structures {

class b_tree {
public:
    static constexpr std::size_t keys_per_node = 32;
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    /// Sorted; the children of node i are the nodes i * 33 + 1 to i * 33 + 33.
    struct alignas(64) node {
        std::uint32_t keys[keys_per_node];
    };

    /// The caller owns `nodes`. fill() writes the keys.
    explicit b_tree(std::span<node> nodes) noexcept : nodes_(nodes) {}

    /// Fills the tree with the values of `next()`, which must be ascending and less than `none`.
    template <class Next>
    void fill(Next next) {
        fill_below(0, next);
    }

    /// The least key of the tree that is not less than `key`, or `none`.
    [[nodiscard]] std::uint32_t least_from(std::uint32_t key) const noexcept {
        std::uint32_t least = none;
        for (std::size_t i = 0; i < nodes_.size();) {
            i = descend(i, key, least);
        }
        return least;
    }

    /// The same search as a coil::lookup, which suspends at each cache miss.
    [[nodiscard]] coil::lookup<std::uint32_t> find_least_from(std::uint32_t key) const {
        std::uint32_t least = none;
        for (std::size_t i = 0; i < nodes_.size();) {
            co_await coil::prefetch(&nodes_[i], sizeof(node));
            i = descend(i, key, least);
        }
        co_return least;
    }

    /// One step of the search. Returns the child to continue with.
    std::size_t descend(std::size_t i, std::uint32_t key, std::uint32_t& least) const noexcept {
        const node& at = nodes_[i];
        std::size_t less = 0;
        for (const std::uint32_t k : at.keys) {
            less += static_cast<std::size_t>(k < key);
        }
        if (less < keys_per_node) {
            least = at.keys[less];
        }
        return i * (keys_per_node + 1) + 1 + less;
    }

    [[nodiscard]] std::span<const node> nodes() const noexcept { return nodes_; }

private:
    template <class Next>
    void fill_below(std::size_t i, Next& next) { // NOLINT(*-no-recursion): as deep as the tree
        if (i >= nodes_.size()) {
            return;
        }
        for (std::size_t k = 0; k < keys_per_node; ++k) {
            fill_below(i * (keys_per_node + 1) + 1 + k, next);
            nodes_[i].keys[k] = next();
        }
        fill_below(i * (keys_per_node + 1) + 1 + keys_per_node, next);
    }

    std::span<node> nodes_;
};

} // namespace structures
