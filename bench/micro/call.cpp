// co_await of a task that completes immediately, and a recursion of such calls.

#include "floor.hpp"

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

namespace {

constexpr int fib_argument = 30;

/// The number of calls that fib(n) makes, including itself: 2·fib(n+1) − 1.
constexpr std::int64_t fib_calls(int n) {
    std::int64_t a = 0;
    std::int64_t b = 1;
    for (int i = 0; i <= n; ++i) {
        const std::int64_t next = a + b;
        a = b;
        b = next;
    }
    return 2 * a - 1;
}

coil::task<int> trivial(int n) { co_return n; }

coil::task<> calls(benchmark::State& state) {
    int n = 0;
    for ([[maybe_unused]] auto _ : state) {
        n += co_await trivial(n);
    }
    benchmark::DoNotOptimize(n);
}

void call_coil(benchmark::State& state) {
    coil::run(calls(state));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(call_coil);

// Not inlined, because the compiler would otherwise elide the allocation of the frame. The floor is
// meant to include that allocation.
[[gnu::noinline]] floor_::task floor_trivial(int n) { co_return n; }

floor_::detached floor_calls(benchmark::State& state) {
    int n = 0;
    for ([[maybe_unused]] auto _ : state) {
        n += co_await floor_trivial(n);
    }
    benchmark::DoNotOptimize(n);
}

void call_floor(benchmark::State& state) {
    floor_calls(state).start();
    floor_::ready.run();
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(call_floor);

coil::task<int> fib(int n) {
    if (n < 2) {
        co_return n;
    }
    co_return co_await fib(n - 1) + co_await fib(n - 2);
}

coil::task<> fibs(benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(co_await fib(fib_argument));
    }
}

void fib_coil(benchmark::State& state) {
    coil::run(fibs(state));
    state.SetItemsProcessed(state.iterations() * fib_calls(fib_argument));
}
BENCHMARK(fib_coil)->Unit(benchmark::kMillisecond);

floor_::task floor_fib(int n) {
    if (n < 2) {
        co_return n;
    }
    co_return co_await floor_fib(n - 1) + co_await floor_fib(n - 2);
}

floor_::detached floor_fibs(benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(co_await floor_fib(fib_argument));
    }
}

void fib_floor(benchmark::State& state) {
    floor_fibs(state).start();
    floor_::ready.run();
    state.SetItemsProcessed(state.iterations() * fib_calls(fib_argument));
}
BENCHMARK(fib_floor)->Unit(benchmark::kMillisecond);

} // namespace
