// Mistakes in spawning.

#include "support/run.hpp"

#include <chrono>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

// mistake 3: `co_spawn([x]() -> task<> { ... })`
// shows: nothing: the captures live as long as the task
TEST(SpawnMisuse, TheCapturesOfALambdaLiveAsLongAsItsTask) {
    std::string seen;
    int destroyed = 0;
    run([](std::string& result, int& count) -> task<> {
        {
            const std::string text(100, 'x');
            co_spawn([text, &result]() -> task<> {
                co_await sleep_for(1ms);
                result += text;
            });
            auto length = [text, alive = coil_test::on_destruction(count)]() -> task<std::size_t> {
                co_await sleep_for(1ms);
                co_return text.size();
            };
            auto handle = spawn(std::move(length));
            EXPECT_EQ(count, 0);
            EXPECT_EQ(co_await handle, 100U);
        }
        co_await sleep_for(2ms);
    }(seen, destroyed));
    EXPECT_EQ(seen, std::string(100, 'x'));
    EXPECT_EQ(destroyed, 1);
}

TEST(SpawnMisuse, AFunctionMayBeGivenToAContextAndToARuntime) {
    io_context ctx;
    auto one = ctx.spawn([]() -> task<int> { co_return 1; });
    ctx.run();
    EXPECT_EQ(one.get(), 1);
    runtime rt(1);
    auto two = rt.spawn([]() -> task<int> { co_return 2; });
    rt.run();
    EXPECT_EQ(two.get(), 2);
}

} // namespace
