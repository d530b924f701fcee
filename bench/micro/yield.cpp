// co_await yield(): once through the ready queue. Each iteration is one round of all coroutines.

#include "floor.hpp"

#include <coil/coil.hpp>

#include <benchmark/benchmark.h>

namespace {

coil::task<> others(const bool& done) {
    while (!done) {
        co_await coil::yield();
    }
}

coil::task<> rounds(benchmark::State& state, bool& done) {
    for ([[maybe_unused]] auto _ : state) {
        co_await coil::yield();
    }
    done = true;
}

void yield_coil(benchmark::State& state) {
    bool done = false;
    coil::io_context context;
    context.co_spawn(rounds(state, done));
    for (std::int64_t i = 1; i < state.range(0); ++i) {
        context.co_spawn(others(done));
    }
    context.run();
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(yield_coil)->Arg(1)->Arg(1000);

floor_::detached floor_others(const bool& done) {
    while (!done) {
        co_await floor_::yield();
    }
}

floor_::detached floor_rounds(benchmark::State& state, bool& done) {
    for ([[maybe_unused]] auto _ : state) {
        co_await floor_::yield();
    }
    done = true;
}

void yield_floor(benchmark::State& state) {
    bool done = false;
    floor_rounds(state, done).start();
    for (std::int64_t i = 1; i < state.range(0); ++i) {
        floor_others(done).start();
    }
    floor_::ready.run();
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(yield_floor)->Arg(1)->Arg(1000);

} // namespace
