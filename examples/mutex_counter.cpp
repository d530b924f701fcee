// A thousand tasks on two contexts increment a counter that a mutex protects:
//
//     mutex_counter              1000 tasks
//     mutex_counter 50
//
// Each task reads the counter, yields, and writes it back. Without the mutex almost all increments
// would be lost.

#include <coil/coil.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace coil;

namespace {

struct counter {
    mutex m;
    long value = 0;
};

task<long> adds(counter& shared, int times) {
    for (int i = 0; i < times; ++i) {
        const auto guard = co_await shared.m.lock_guard();
        const long seen = shared.value;
        co_await yield();
        shared.value = seen + 1;
    }
    co_return times;
}

task<long> run_all(counter& shared, int tasks, int times) {
    std::vector<task<long>> all;
    all.reserve(static_cast<std::size_t>(tasks));
    for (int i = 0; i < tasks; ++i) {
        all.push_back(adds(shared, times));
    }
    co_return co_await parallel(std::move(all), std::plus<>());
}

} // namespace

int main(int argc, char** argv) try {
    int tasks = 1000;
    if (argc > 1) {
        const std::string_view word = argv[1];
        const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), tasks);
        if (argc > 2 || error != std::errc() || rest != word.data() + word.size() || tasks < 1) {
            std::fprintf(stderr, "usage: mutex_counter [TASKS]\n");
            return 2;
        }
    }
    counter shared;
    runtime contexts(2);
    const long expected = contexts.block_on(run_all(shared, tasks, 100));
    std::printf("%d tasks counted to %ld, and it should be %ld\n", tasks, shared.value, expected);
    return shared.value == expected ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "mutex_counter: %s\n", e.what());
    return 1;
}
