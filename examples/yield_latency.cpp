// Measures the time of a switch from one coroutine to the next:
//
//     yield_latency            1000 coroutines, ten million switches
//     yield_latency 1          one coroutine that yields to itself
//
// It shows co_spawn and yield: every coroutine lets all others run before it continues.

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <system_error>

using namespace coil;

namespace {

task<> yielding(unsigned long times) {
    for (unsigned long i = 0; i < times; ++i) {
        co_await yield();
    }
}

std::optional<unsigned long> parse(const char* word) {
    unsigned long number = 0;
    const char* const end = word + std::strlen(word);
    const auto [rest, error] = std::from_chars(word, end, number);
    return rest == end && error == std::errc() && number > 0 ? std::optional(number) : std::nullopt;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<unsigned long> coroutines = argc > 1 ? parse(argv[1]) : 1000;
    const std::optional<unsigned long> switches = argc > 2 ? parse(argv[2]) : 10'000'000;
    if (!coroutines || !switches || argc > 3) {
        std::fprintf(stderr, "usage: yield_latency [COROUTINES [SWITCHES]]\n");
        return 2;
    }
    const unsigned long each = (*switches + *coroutines - 1) / *coroutines;

    io_context context;
    for (unsigned long i = 0; i < *coroutines; ++i) {
        context.co_spawn(yielding(each));
    }
    const auto start = std::chrono::steady_clock::now();
    context.run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;

    const double done = static_cast<double>(*coroutines) * static_cast<double>(each);
    std::printf("%lu coroutines, %.0f switches: %.2f ns per switch\n", *coroutines, done,
                time.count() / done);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "yield_latency: %s\n", e.what());
    return 1;
}
