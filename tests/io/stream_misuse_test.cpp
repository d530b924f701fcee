// Misuse of a stream ends the program with a message; and the cost of a stream.

#include "io/stream_support.hpp"

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

task<int> wait_for(io::recv_stream& incoming) { co_return (co_await incoming.next()).result(); }

TEST(StreamDeathTest, TwoCoroutinesAtOnce) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto main = [](bool ready) -> task<> {
        const socket_pair s;
        buffer_pool pool;
        auto incoming = io::recv_multishot(s.a, pool);
        inplace_stop_source stop;
        [[maybe_unused]] auto one =
            coil::spawn(with_stop_token(wait_for(incoming), stop.get_token()));
        co_await some_turns();
        if (ready) {
            stop.request_stop(); // the first coroutine is ready but has not resumed yet
        }
        co_await wait_for(incoming);
    };
    EXPECT_DEATH(coil::run(main(false)), "is awaited by two coroutines at once");
    EXPECT_DEATH(coil::run(main(true)), "is awaited by two coroutines at once");
}

// mistake 13: a stream is awaited on another context
// shows: `is awaited on another context than the one it began on`
TEST(StreamDeathTest, OnAnotherContext) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const socket_pair s;
            buffer_pool pool;
            io::recv_stream incoming(s.a, pool, 0);
            io_context one;
            io_context two;
            put(s.b, "x");
            coil_test::run_on(one, wait_for(incoming));
            coil_test::run_on(two, wait_for(incoming));
        },
        "is awaited on another context than the one it began on");
}

// mistake 13: a stream is destroyed on another thread
TEST(StreamDeathTest, DestroyedOnAnotherThread) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto main = []() -> task<> {
        const socket_pair s;
        buffer_pool pool;
        auto incoming = std::make_unique<io::recv_stream>(s.a, pool, 0);
        EXPECT_EQ((co_await timeout(incoming->next(), 0ms)).result(), -ECANCELED);
        std::thread([&] { incoming.reset(); }).join();
    };
    EXPECT_DEATH(coil::run(main()), "on a thread other than its context's");
}

TEST(StreamDeathTest, DestroyedOnAnotherThreadWhileItWaitsForABuffer) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto main = [](bool waited_for) -> task<> {
        const socket_pair s;
        buffer_pool pool(pool_of(1, 64));
        auto incoming = std::make_unique<io::recv_stream>(s.a, pool, 0);
        put(s.b, std::string(128, 'x'));
        const auto held = co_await incoming->next(); // the only buffer
        EXPECT_EQ(held.result(), 64);
        auto waits = coil::spawn(wait_for(*incoming));
        co_await some_turns();
        if (!waited_for) {
            waits.cancel();
            EXPECT_EQ(co_await waits, -ECANCELED);
        }
        std::thread([&] { incoming.reset(); }).join();
    };
    const char* const said =
        "waits for a buffer was destroyed on a thread other than its context's";
    EXPECT_DEATH(coil::run(main(true)), said);
    EXPECT_DEATH(coil::run(main(false)), said);
}

TEST(StreamDeathTest, OutsideOfAContext) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto waits = [](io::recv_stream& incoming) -> coil_test::manual {
        (void)co_await incoming.next();
    };
    EXPECT_DEATH(
        {
            const socket_pair s;
            buffer_pool pool;
            io::recv_stream incoming(s.a, pool, 0);
            const coil_test::manual lost = waits(incoming);
            lost.start();
        },
        "outside of an io_context");
}

} // namespace
