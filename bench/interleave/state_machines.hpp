// The lookups of examples/interleave as state machines written by hand: `width` states in an array,
// each advanced by one step per round.
#pragma once

#include "interleave/b_tree.hpp"
#include "interleave/chain.hpp"
#include "interleave/hash_table.hpp"
#include "interleave/sorted_array.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace by_hand {

/// A Machine has a `state`; `begin(state, key)` starts a lookup, and `step(state, result)` returns
/// whether it has ended.
template <class Machine, class Key, class Result>
void run(const Machine& machine, std::size_t width, std::span<const Key> keys,
         std::span<Result> results) {
    struct slot {
        typename Machine::state state;
        std::size_t index;
    };
    std::vector<slot> slots(std::min(width, keys.size()));
    std::size_t next = 0;
    for (slot& s : slots) {
        machine.begin(s.state, keys[next]);
        s.index = next++;
    }
    std::size_t active = slots.size();
    while (active != 0) {
        for (std::size_t i = 0; i < active;) {
            slot& s = slots[i];
            if (!machine.step(s.state, results[s.index])) {
                ++i;
            } else if (next < keys.size()) {
                machine.begin(s.state, keys[next]);
                s.index = next++;
                ++i;
            } else {
                s = slots[--active];
            }
        }
    }
}

struct sorted_array {
    structures::sorted_array sorted;
    struct state {
        const std::uint32_t* first;
        std::size_t size;
        std::uint32_t key;
    };

    void begin(state& s, std::uint32_t key) const {
        s = {sorted.data(), sorted.size(), key};
        prefetch(s);
    }
    bool step(state& s, std::uint64_t& result) const {
        if (s.size <= structures::last_elements) {
            result = static_cast<std::uint64_t>(std::lower_bound(s.first, s.first + s.size, s.key) -
                                                sorted.data());
            return true;
        }
        const std::size_t half = s.size / 2;
        s.first = s.first[half] < s.key ? s.first + half : s.first;
        s.size -= half;
        prefetch(s);
        return false;
    }

private:
    static void prefetch(const state& s) {
        if (s.size > structures::last_elements) {
            __builtin_prefetch(s.first + s.size / 2);
        } else {
            __builtin_prefetch(s.first);
            __builtin_prefetch(s.first + s.size);
        }
    }
};

struct hash_table {
    const structures::hash_table& table;
    struct state {
        std::uint64_t key;
        const structures::hash_table::entry* const* bucket; // null: at an entry
        const structures::hash_table::entry* entry;
    };

    void begin(state& s, std::uint64_t key) const {
        s = {key, table.bucket(key), nullptr};
        __builtin_prefetch(s.bucket);
    }
    bool step(state& s, std::uint64_t& result) const {
        if (s.bucket != nullptr) {
            s.entry = *s.bucket;
            s.bucket = nullptr;
        } else if (s.entry->key == s.key) {
            result = s.entry->value;
            return true;
        } else {
            s.entry = s.entry->next;
        }
        if (s.entry == nullptr) {
            result = 0;
            return true;
        }
        __builtin_prefetch(s.entry);
        return false;
    }
};

struct b_tree {
    const structures::b_tree& tree;
    struct state {
        std::size_t node;
        std::uint32_t key;
        std::uint32_t least;
    };

    void begin(state& s, std::uint32_t key) const {
        s = {0, key, structures::b_tree::none};
        prefetch(s);
    }
    bool step(state& s, std::uint64_t& result) const {
        s.node = tree.descend(s.node, s.key, s.least);
        if (s.node >= tree.nodes().size()) {
            result = s.least;
            return true;
        }
        prefetch(s);
        return false;
    }

private:
    void prefetch(const state& s) const {
        const char* const node = reinterpret_cast<const char*>(&tree.nodes()[s.node]);
        __builtin_prefetch(node);
        __builtin_prefetch(node + 64);
    }
};

struct chain {
    int hops;
    struct state {
        const structures::link* at;
        int left;
    };

    void begin(state& s, const structures::link* from) const {
        s = {from, hops};
        __builtin_prefetch(from);
    }
    bool step(state& s, std::uint64_t& result) const {
        if (s.left == 0) {
            result = s.at->value;
            return true;
        }
        --s.left;
        s.at = s.at->next;
        __builtin_prefetch(s.at);
        return false;
    }
};

} // namespace by_hand
