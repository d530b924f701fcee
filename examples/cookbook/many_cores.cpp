// Spread a computation over all processors.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

using namespace coil;

task<std::uint64_t> sum_of_range(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
        sum += i;
    }
    co_return sum;
}

task<std::uint64_t> sum_below(std::uint64_t n) {
    std::vector<task<std::uint64_t>> parts;
    parts.reserve(100);
    for (std::uint64_t i = 0; i < 100; ++i) {
        parts.push_back(sum_of_range(n * i / 100, n * (i + 1) / 100));
    }
    co_return co_await parallel(std::move(parts), std::plus<>()); // on the contexts of the runtime
}

int main() {
    runtime rt; // a context for each processor
    std::printf("%llu\n", static_cast<unsigned long long>(rt.block_on(sum_below(1'000'000))));
}
