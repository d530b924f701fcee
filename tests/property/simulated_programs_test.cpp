// The random programs in a simulated world, where a seed replays the whole run, including the
// kernel's and the other threads' actions.
//
// COIL_PROPERTY_PROGRAMS=n: the number of worlds, with four programs each. SEED=n: only that seed.

#include "property/steps.hpp"
#include "support/run.hpp"
#include "support/system.hpp"

#include <coil/exec/blocking.hpp>
#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

using namespace property;

namespace {

namespace sim = coil::sim;

/// Directs the tests' system calls to a host for a scope.
class in_world {
public:
    in_world(sim::world& w, sim::host& h) noexcept {
        sys::around = &w;
        sys::here = &h;
    }
    in_world(const in_world&) = delete;
    in_world& operator=(const in_world&) = delete;
    ~in_world() {
        sys::around = nullptr;
        sys::here = nullptr;
    }
};

/// Runs until the program is over; periodic tasks do not exist here.
void run_to_end(sim::world& around, coil::io_context& ctx) {
    around.run_for(10s);
    EXPECT_EQ(ctx.metrics().tasks, 0U) << "a program that should have ended has not";
}

/// Work that other threads do for the context, and messages from them at any time.
task<> ask_other_threads(world& w, random_source r) {
    for (unsigned times = r.between(1, 4); times > 0; --times) {
        await_probe probe(w);
        const unsigned expected = r.below(1000);
        const unsigned given = co_await coil::blocking([expected] { return expected; });
        EXPECT_EQ(given, expected);
        probe.resumed();
        if (r.one_in(2)) {
            co_await coil::sleep_for(random_time(r));
        }
    }
}

bool play_simulated(sim::world& around, world& w, random_source& r) {
    coil::io_context& ctx = w.context();
    bool leftovers = false;
    std::vector<coil::join_handle<>> handles = start_tasks(w, r);
    if (r.one_in(3)) {
        handles.push_back(ctx.spawn(ask_other_threads(w, random_source(r()))));
    }
    if (w.finite) {
        run_to_end(around, ctx);
    } else if (r.one_in(16)) {
        handles.clear();
        leftovers = true;
    } else if (r.one_in(4)) {
        ctx.co_spawn(stop_after(w, 5ms));
        around.after(random_time(r), [&ctx, &w, &handles, seed = r()] {
            ctx.co_spawn(body(w, random_source(seed), 1));
            if (!handles.empty()) {
                handles.front().cancel();
            }
            ctx.stop();
        });
        run_to_end(around, ctx);
        leftovers = true;
    } else {
        w.steps_to_stop = r.one_in(2) ? static_cast<long>(r.between(1, 30)) : -1;
        ctx.co_spawn(stop_after(w, random_time(r)));
        run_to_end(around, ctx);
    }
    w.stir();
    for (auto& handle : handles) {
        if (handle.done()) {
            take_result(handle);
        }
    }
    return leftovers;
}

/// Returns the trace's hash.
std::uint64_t play_simulated_seed(std::uint64_t seed) {
    constexpr unsigned programs_per_world = 4;
    random_source r(seed);
    const unsigned kind = r.below(3);
    sim::world_options options;
    options.faults = kind == 0   ? sim::fault_plan{}
                     : kind == 1 ? sim::fault_plan::timing()
                                 : sim::fault_plan::everything();
    options.faults.longest_delay_us = 200;
    options.trace_lines = 2000;
    quarantine blocks;
    std::uint64_t hash = 0;
    {
        sim::world around(r(), options);
        sim::host& host = around.host("host");
        {
            std::vector<std::unique_ptr<world>> worlds;
            {
                const in_world scope(around, host);
                bool leftovers = false;
                coil::io_context_options wanted;
                wanted.entries = std::array{2U, 4U, 8U, 16U, 64U}.at(r.below(5));
                wanted.cq_entries = r.one_in(4) ? wanted.entries : 0;
                wanted.max_in_flight =
                    std::array{1U, 2U, 5U, 100U, UINT32_MAX, UINT32_MAX}.at(r.below(6));
                wanted.direct_descriptors = r.one_in(3) ? r.between(1, 4) : 256;
                wanted.registered_buffers = r.one_in(3) ? 1 : 64;
                wanted.on_unhandled_exception = [](std::exception_ptr error) {
                    try {
                        std::rethrow_exception(std::move(error));
                    } catch (const planned&) {
                    } catch (const std::exception& e) {
                        ADD_FAILURE()
                            << "an exception that the program did not throw: " << e.what();
                    }
                };
                coil::io_context& ctx = host.make_context(wanted);
                for (unsigned i = 0; i < programs_per_world; ++i) {
                    const bool finite = r.one_in(3) && !leftovers;
                    worlds.push_back(
                        std::make_unique<world>(ctx, blocks, finite, kind == 2, r.one_in(2)));
                    leftovers = play_simulated(around, *worlds.back(), r) || leftovers;
                }
                host.end_contexts();
                for (const auto& w : worlds) {
                    w->check();
                }
                worlds.clear(); // their descriptors belong to the host
                EXPECT_TRUE(host.open_descriptors().empty())
                    << "G4: " << host.open_descriptors().size() << " descriptors leaked";
            }
        }
        hash = around.trace_hash();
        if (testing::Test::HasFailure()) {
            std::fputs(around.trace().c_str(), stderr);
        }
    }
    blocks.check_all();
    return hash;
}

class SimulatedPrograms : public testing::TestWithParam<unsigned> {};

TEST_P(SimulatedPrograms, G1_G2_G3_G4_G5_G6_G12_NothingIsLeftOfThem) {
    constexpr unsigned parts = 4;
    const char* const wanted = std::getenv("COIL_PROPERTY_PROGRAMS");
    const std::uint64_t programs =
        wanted != nullptr ? std::strtoull(wanted, nullptr, 0)
                          : static_cast<std::uint64_t>(coil_test::rounds(2'000, 100'000));
    const bool one = std::getenv("SEED") != nullptr;
    if (one && GetParam() != 0) {
        GTEST_SKIP() << "a single seed was requested, which the first part runs";
    }
    sim::for_each_seed(one ? 1 : programs / parts, [&](std::uint64_t n) {
        const std::uint64_t seed = one ? n : n * parts + GetParam();
        const sim::detail::seed_report in_case(seed); // reports this seed if the run fails
        play_simulated_seed(seed);
        if (HasFailure()) {
            ADD_FAILURE() << "replay: SEED=" << seed;
        }
        return !HasFailure();
    });
}

INSTANTIATE_TEST_SUITE_P(Part, SimulatedPrograms, testing::Range(0U, 4U));

TEST(SimulatedProgram, TheSameSeedGivesTheSameTrace) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        EXPECT_EQ(play_simulated_seed(seed), play_simulated_seed(seed)) << "SEED=" << seed;
    }
}

} // namespace
