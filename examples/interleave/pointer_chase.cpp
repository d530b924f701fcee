// Walks of eight hops in a long, randomly linked list: one at a time, and 16 at a time.
//
//     pointer_chase [MIB [COUNT [WIDTH]]]

#include "chain.hpp"
#include "timing.hpp"

#include <cstdint>
#include <random>
#include <vector>

int main(int argc, char** argv) {
    constexpr int hops = 8;
    const structures::options o = structures::options_of(argc, argv);
    std::vector<structures::link> links(o.bytes / sizeof(structures::link));
    structures::link_randomly(links, 1);
    std::mt19937_64 random(1);
    std::vector<const structures::link*> keys(o.count);
    for (const structures::link*& key : keys) {
        key = &links[random() % links.size()];
    }
    return structures::compare(
        o, keys, [&](const structures::link* from) { return structures::value_after(from, hops); },
        [&](const structures::link* from) { return structures::find_value_after(from, hops); });
}
