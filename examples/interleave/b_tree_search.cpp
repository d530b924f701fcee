// Searches in a large static B-tree: plain, and 16 lookups at a time.
//
//     b_tree_search [MIB [COUNT [WIDTH]]]

#include "b_tree.hpp"
#include "timing.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

int main(int argc, char** argv) {
    using structures::b_tree;
    const structures::options o = structures::options_of(argc, argv);
    std::vector<b_tree::node> nodes(o.bytes / sizeof(b_tree::node));
    const std::uint64_t scale = (std::uint64_t{1} << 32) / (nodes.size() * b_tree::keys_per_node);
    b_tree tree(nodes);
    std::uint64_t added = 0;
    tree.fill([&] { return static_cast<std::uint32_t>(scale * added++); });
    std::mt19937 random(1);
    std::vector<std::uint32_t> keys(o.count);
    for (std::uint32_t& key : keys) {
        key = static_cast<std::uint32_t>(random());
    }
    return structures::compare(
        o, keys, [&](std::uint32_t key) { return tree.least_from(key); },
        [&](std::uint32_t key) { return tree.find_least_from(key); });
}
