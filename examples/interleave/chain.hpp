// A linked list in random order: every hop is a cache miss that depends on the previous one.
#pragma once

#include <coil/interleave/lookup.hpp>
#include <coil/interleave/prefetch.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>

namespace structures {

struct alignas(64) link {
    const link* next;
    std::uint64_t value;
};

/// Links all elements in one random cycle.
inline void link_randomly(std::span<link> links, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < links.size(); ++i) {
        links[i] = {&links[i], i};
    }
    for (std::size_t i = links.size(); i-- > 1;) {
        std::swap(links[i].next, links[random() % i].next);
    }
}

inline std::uint64_t value_after(const link* from, int hops) noexcept {
    for (int i = 0; i < hops; ++i) {
        from = from->next;
    }
    return from->value;
}

/// The same walk as a coil::lookup.
inline coil::lookup<std::uint64_t> find_value_after(const link* from, int hops) {
    for (int i = 0; i < hops; ++i) {
        co_await coil::prefetch(from);
        from = from->next;
    }
    co_await coil::prefetch(from);
    co_return from->value;
}

} // namespace structures
