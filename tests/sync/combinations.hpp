#pragma once

// Waits in nested combinations. Each way in which a wait can end has a test file of its own,
// because every combination of every scenario is expensive to compile.

#include "sync/scenarios.hpp"

#include <type_traits>

namespace sync_test {

using namespace coil;
using namespace std::chrono_literals;

using combined_scenarios =
    ::testing::Types<mutex_scenario, guard_scenario, semaphore_scenario, auto_event_scenario,
                     event_scenario, event_value_scenario, latch_scenario, wait_group_scenario,
                     barrier_scenario, writer_scenario, reader_scenario, recv_scenario<0>,
                     recv_scenario<1>, recv_scenario<1000>, closed_recv_scenario, send_scenario,
                     oneshot_scenario, broadcast_scenario>;

inline task<> some_turns(int n) {
    for (int i = 0; i < n; ++i) {
        co_await yield();
    }
}

/// Whether this scenario is tested in all combinations. There is one scenario for each kind of
/// await: without a result, moving a value out, taking something, ending with an exception. The
/// other primitives differ only in what they wait for.
template <class S>
constexpr bool stands_for_others =
    std::is_same_v<S, semaphore_scenario> || std::is_same_v<S, guard_scenario> ||
    std::is_same_v<S, recv_scenario<1>> || std::is_same_v<S, send_scenario>;

/// Calls `f` with a factory of waits, for each way to combine them.
template <class S, class F>
void in_each_combination(F f) {
    constinit static event* never = nullptr;
    event never_set;
    never = &never_set;
    const auto step = [&f](const char* name, auto make) {
        SCOPED_TRACE(name);
        f(make);
    };
    step("timeout", [](S& s) { return timeout(s.wait(), 24h); });
    if constexpr (stands_for_others<S>) {
        step("when_any", [](S& s) { return when_any(s.wait(), never->wait()); });
        step("timeout of when_any of timeout",
             [](S& s) { return timeout(when_any(never->wait(), timeout(s.wait(), 24h)), 24h); });
        step("when_all of shield of when_any",
             [](S& s) { return when_all(shield(when_any(s.wait(), never->wait()))); });
    }
}

} // namespace sync_test
