// co_spawn of a task that completes immediately: allocate, queue, run, destroy. Each iteration is a
// burst of 100.

#include "floor.hpp"

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

namespace {

constexpr int burst = 100;

coil::task<> count_up(int& n) {
    ++n;
    co_return;
}

coil::task<> bursts(benchmark::State& state, int& n) {
    for ([[maybe_unused]] auto _ : state) {
        for (int i = 0; i < burst; ++i) {
            coil::co_spawn(count_up(n));
        }
        co_await coil::yield();
    }
}

void spawn_coil(benchmark::State& state) {
    int n = 0;
    coil::run(bursts(state, n));
    benchmark::DoNotOptimize(n);
    state.SetItemsProcessed(state.iterations() * burst);
}
BENCHMARK(spawn_coil);

[[gnu::noinline]] floor_::detached floor_count_up(int& n) {
    ++n;
    co_return;
}

floor_::detached floor_bursts(benchmark::State& state, int& n) {
    for ([[maybe_unused]] auto _ : state) {
        for (int i = 0; i < burst; ++i) {
            floor_count_up(n).start();
        }
        co_await floor_::yield();
    }
}

void spawn_floor(benchmark::State& state) {
    int n = 0;
    floor_bursts(state, n).start();
    floor_::ready.run();
    benchmark::DoNotOptimize(n);
    state.SetItemsProcessed(state.iterations() * burst);
}
BENCHMARK(spawn_floor);

} // namespace
