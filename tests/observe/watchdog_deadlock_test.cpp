// The contexts of a runtime inspect each other before they report tasks that wait for ever. The
// watchdog does not report that search.

#include "support.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> waits(event& never) { co_await never.wait(); }

TEST(WatchdogAndDeadlock, TheSearchForADeadlockIsNoLongTurn) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
#endif
#endif
    event never;
    std::mutex mutex;
    std::vector<std::string> stalls;
    std::vector<std::string> deadlocks;
    runtime_options options;
    options.contexts = 2;
    options.context.watchdog.enabled = watchdog_options::use::on;
    options.context.watchdog.turn = 10ms; // the search takes 50 ms
    options.context.watchdog.interval = 0ns;
    options.context.watchdog.on_report = [&](const stall_report& report) {
        const std::scoped_lock lock(mutex);
        stalls.push_back(to_string(report));
    };
    runtime* all = nullptr;
    options.context.on_deadlock = [&](const std::string& text) {
        const std::scoped_lock lock(mutex);
        deadlocks.push_back(text);
        all->stop();
    };
    runtime rt(options);
    all = &rt;
    rt.context(0).co_spawn(waits(never), "one");
    rt.context(1).co_spawn(waits(never), "two");
    rt.run();
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(deadlocks.size(), 1U);
    for (const std::string& text : stalls) {
        ADD_FAILURE() << text;
    }
}

} // namespace
