// A dump that is taken during a trace.

#include "../../src/context/trace_ring.hpp"
#include "support.hpp"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

using namespace coil;

namespace {

std::int64_t thread_cpu_ns() {
    ::timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t shortest_cpu_ns(const std::function<void()>& f) {
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < 5; ++i) {
        const std::int64_t begin = thread_cpu_ns();
        f();
        shortest = std::min(shortest, thread_cpu_ns() - begin);
    }
    return shortest;
}

/// The names of a trace are copied under a lock that threads need to record.
TEST(DumpDuringATrace, CopiesNoNames) {
    trace::start(16);
    io_context ctx;
    for (int i = 0; i < 1500; ++i) {
        ctx.co_spawn([]() -> task<> { co_return; }(), std::string(4000, 'x') + std::to_string(i));
    }
    ctx.run();
    const std::int64_t copy =
        shortest_cpu_ns([] { EXPECT_GT(detail::all_trace_rings().names.size(), 1000U); });
    const std::int64_t dump = shortest_cpu_ns([&ctx] { EXPECT_FALSE(ctx.dump_tasks().empty()); });
    trace::stop();
    trace::start(16); // forgets the names
    trace::stop();
    EXPECT_LT(dump, copy / 2);
}

} // namespace
