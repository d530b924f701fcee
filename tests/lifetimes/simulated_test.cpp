// Runs the random programs in the simulator, where a seed determines the whole run: the kernel's
// behaviour, the order in which contexts run, and the time of the attacks. Steps that need threads
// are left out. The environment variables are those of programs_test.cpp; COIL_LIFETIME_WORLD=n
// selects another schedule.

#include "lifetimes/draw.hpp"
#include "lifetimes/play.hpp"
#include "lifetimes/watchdog.hpp"
#include "support/system.hpp"

#include <coil/sim/world.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace lifetime_test {

namespace {

namespace sim = coil::sim;

/// While this object exists, the test's system calls act on a host.
class in_host {
public:
    in_host(sim::world& w, sim::host& h) noexcept {
        sys::around = &w;
        sys::here = &h;
    }
    in_host(const in_host&) = delete;
    ~in_host() {
        sys::around = nullptr;
        sys::here = nullptr;
    }
};

class simulated_program {
public:
    simulated_program(const program& p, watchdog& dog, sim::world& around, sim::host& host)
        : plan_(p), dog_(dog), around_(around), host_(host), world_(p) {}
    simulated_program(const simulated_program&) = delete;

    void play_to_end() {
        world_.pool.emplace(1);
        world_.blocking = &coil::default_blocking_pool();
        for (unsigned i = 0; i < plan_.contexts; ++i) {
            coil::io_context_options o;
            o.entries = plan_.entries;
            o.max_in_flight = plan_.most_in_flight;
            o.on_unhandled_exception = &report;
            world_.contexts.push_back(&host_.make_context(o));
        }
        for (const root& r : plan_.roots) {
            if (r.detached) {
                world_.context(r.context).co_spawn(play(world_, r.work));
            } else {
                handles_.push_back(world_.context(r.context).spawn(play(world_, r.work)));
            }
        }
        world_.on_step = [this](unsigned now) { at_step(now); };
        for (const attack& a : plan_.attacks) {
            if (a.after_steps == 0) {
                do_later(a);
            }
        }
        around_.run_for(5ms);
        end();
    }

private:
    void do_later(const attack& a) {
        around_.after(a.time, [this, &a] { do_it(a); });
    }

    void at_step(unsigned now) {
        for (const attack& a : plan_.attacks) {
            if (a.after_steps == now && a.by_task) {
                do_it(a);
            } else if (a.after_steps == now) {
                do_later(a);
            }
        }
    }

    void do_it(const attack& a) {
        for (const action& each : a.actions) {
            switch (each.what) {
            case deed::stop_one:
                world_.context(each.index).stop();
                break;
            case deed::stop_all:
            case deed::stop_runtime:
                stop_all();
                break;
            case deed::cancel:
                if (!handles_.empty()) {
                    handles_.at(each.index % handles_.size()).cancel();
                }
                break;
            case deed::spawn:
                world_.context(each.index)
                    .co_spawn(play(world_, plan_.roots.at(each.index % plan_.roots.size()).work));
                break;
            case deed::post:
                world_.context(each.index).post([here = witness(world_)] { here.of().stir(0); });
                break;
            }
        }
    }

    void stop_all() {
        for (auto* const each : world_.contexts) {
            each->stop();
        }
    }

    void end() {
        dog_.program_ends();
        dog_.waits_for("the contexts to end");
        stop_all();
        if (plan_.waits) {
            around_.run_for(1ms);
        }
        world_.pool->stop(); // before the contexts: the work that it drops refers to them
        for (int n = 0; n < 2; ++n) {
            around_.run_for(1ms);
            stop_all();
        }
        dog_.waits_for("the contexts to be destroyed");
        host_.end_contexts();
        around_.run_for(1ms); // ends the work that has returned to the pool
        dog_.waits_for("the pool");
        world_.pool.reset();
        dog_.waits_for("the checks");
        for (auto& each : world_.channels) {
            while (each.try_recv()) {
            }
        }
        EXPECT_EQ(world_.twice, 0U) << "a local was destroyed twice";
        EXPECT_EQ(world_.made - world_.gone, 0) << "locals were not destroyed";
        for (auto& each : handles_) {
            EXPECT_TRUE(each.done()) << "a task has ended, but its handle is not done";
        }
        handles_.clear();
    }

    const program& plan_;
    watchdog& dog_;
    sim::world& around_;
    sim::host& host_;
    world world_;
    const watchdog::observation observation_{world_};
    std::vector<coil::join_handle<>> handles_;
};

void play_simulated_seed(std::uint64_t seed, std::uint64_t schedule) {
    const filter what_is_left;
    const program p = drawer(seed, step_kinds, what_is_left, true).draw();
    if (p.roots.empty()) {
        return;
    }
    const std::string text = text_of(p);
    if (std::getenv("COIL_LIFETIME_PRINT") != nullptr) {
        std::fputs(text.c_str(), stderr);
    }
    sim::world_options options;
    options.faults = seed % 2 == 0 ? sim::fault_plan{} : sim::fault_plan::timing();
    options.trace_lines = 1000;
    {
        watchdog dog(text);
        sim::world around(seed + (schedule << 32U), options);
        sim::host& host = around.host("host");
        {
            const in_host scope(around, host);
            simulated_program(p, dog, around, host).play_to_end();
        }
        EXPECT_TRUE(host.open_descriptors().empty()) << "descriptors leaked";
    }
    if (testing::Test::HasFailure()) {
        ADD_FAILURE() << "replay: " << text;
    }
}

TEST(SimulatedLifetimes, G1_G4_G5_G9_NothingIsLeftHoweverTheyEnd) {
    const auto number = [](const char* name, std::uint64_t otherwise) {
        const char* const text = std::getenv(name);
        return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
    };
    const auto one = number("COIL_LIFETIME_SEED", 0);
    const auto first = one != 0 ? one : number("COIL_LIFETIME_FIRST", 1);
    const auto last = one != 0 ? one
                               : number("COIL_LIFETIME_LAST",
                                        first + static_cast<unsigned>(coil_test::rounds(
                                                    coil_test::sanitized ? 300 : 2000, 80'000)));
    for (auto seed = first; seed <= last && !HasFailure(); ++seed) {
        play_simulated_seed(seed, number("COIL_LIFETIME_WORLD", 0));
    }
}

} // namespace

} // namespace lifetime_test
