#pragma once

#include <coil/coil.hpp>
#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace stream_test {

namespace sim = coil::sim;

/// Runs a task in a simulated world.
template <class T>
T in_world(coil::task<T> work, std::uint64_t seed = 1) {
    sim::world w{seed};
    auto done = w.host("host").spawn(std::move(work));
    EXPECT_TRUE(w.run_until([&] { return done.done(); }, std::chrono::hours(1000)));
    return done.get();
}

} // namespace stream_test
