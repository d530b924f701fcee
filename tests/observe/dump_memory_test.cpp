// The memory of a snapshot.

#include "crowd.hpp"
#include "support.hpp"

#include <sys/resource.h>

using namespace coil;

namespace {

using coil_test::crowd;
using coil_test::no_limit;
using coil_test::waits_for;
using detail::task_capture;

#if !COIL_SANITIZED // they have memory of their own for each page
/// The context's thread finds its memory ready: the thread that waits for the snapshot has taken
/// the page faults, which would be half of the time of each slice.
TEST(DumpMemory, TheStepsHaveNoPageFaults) {
    static constexpr std::size_t count = 20'000;
    io_context ctx;
    crowd steady;
    coil_test::run_on(ctx, [](io_context& here, crowd& some) -> task<> {
        for (std::size_t i = 0; i < count; ++i) {
            here.co_spawn(waits_for(some.add()));
        }
        co_await yield();
        task_capture capture(here.loop(), no_limit);
        capture.reserve();
        const auto faults = [] {
            ::rusage usage{};
            ::getrusage(RUSAGE_THREAD, &usage);
            return usage.ru_minflt;
        };
        const auto before = faults();
        EXPECT_TRUE(capture.step(task_capture::unlimited));
        EXPECT_LT(faults() - before, 100);
        EXPECT_EQ(capture.take().tasks.size(), count + 1);
        some.end_all();
    }(ctx, steady));
}
#endif

} // namespace
