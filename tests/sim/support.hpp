#pragma once

#include "support/run.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace sim_test {

using coil::task;
using namespace std::chrono_literals;
namespace sim = coil::sim;
namespace net = coil::net;
namespace io = coil::io;

/// Runs a task on a host until nothing is left to do, and returns its result.
template <class T>
T run_in(sim::world& w, sim::host& h, task<T> work) {
    auto handle = h.spawn(std::move(work));
    w.run();
    EXPECT_TRUE(handle.done()) << "it waits for ever\n" << w.trace();
    return handle.get();
}

} // namespace sim_test
