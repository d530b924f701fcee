// Look up many keys in a large table, sixteen at a time.
#include <coil/coil.hpp>

#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

using namespace coil;

/// The position of the first element that is not less than `key`.
lookup<std::size_t> position(const std::vector<int>& sorted, int key) {
    std::size_t first = 0;
    for (std::size_t size = sorted.size(); size > 0;) {
        const std::size_t half = size / 2;
        const int& middle = sorted[first + half];
        co_await prefetch(&middle); // other lookups run until the element has arrived
        if (middle < key) {
            first += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    co_return first;
}

task<> co_main() {
    std::vector<int> odd(4'000'000);
    for (std::size_t i = 0; i < odd.size(); ++i) {
        odd[i] = static_cast<int>(2 * i + 1);
    }
    std::vector<int> keys(1'000'000);
    std::iota(keys.begin(), keys.end(), 0);
    std::vector<std::size_t> found(keys.size());
    co_await async_interleave(16, keys, [&](int key) { return position(odd, key); }, found);
    std::printf("%zu odd numbers are less than %d\n", found.back(), keys.back());
}

int main() { coil::run(co_main()); }
