// Adapters of streams: rate_limited and counting_stream.

#include "stream/in_world.hpp"
#include "stream/support.hpp"

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

static_assert(byte_stream<rate_limited<net::socket>> && byte_stream<rate_limited<pipe_end&>>);
static_assert(byte_stream<counting_stream<net::socket>> && byte_stream<idle_limited<net::socket&>>);
static_assert(byte_source<counting_stream<script_source>> &&
              !byte_sink<counting_stream<script_source>>);
static_assert(byte_sink<rate_limited<script_sink&>> && !byte_source<rate_limited<script_sink&>>);
static_assert(!is_plain_socket<counting_stream<net::socket>>, "splice(2) would pass by it");

/// The time in seconds that reading everything takes.
template <class Source>
task<double> time_to_read(Source& from, std::string& into) {
    const auto begin = context_clock::now();
    std::string buf(4096, '\0');
    for (int n; (n = io_result(co_await from.read_some(buf))) != 0;) {
        EXPECT_GT(n, 0);
        into.append(buf, 0, static_cast<std::size_t>(n));
    }
    co_return std::chrono::duration<double>(context_clock::now() - begin).count();
}

TEST(StreamRate, ReadsTheBurstAtOnceAndTheRestAtTheRate) {
    struct example {
        byte_rate rate;
        double seconds;
    };
    for (const auto& [rate, seconds] :
         {example{{1000, 1000}, 9.0}, example{{1000, 1}, 9.999}, example{{3, 10}, 3330.0},
          example{{20'000, 0}, 0.4}, example{{0, 0}, 0.0}, example{{1, 1 << 20}, 0.0}}) {
        auto main = [](byte_rate limit) -> task<double> {
            script_source source(pattern(10'000));
            rate_limited slow{source, {.read = limit}};
            std::string got;
            const double took = co_await time_to_read(slow, got);
            EXPECT_EQ(got, pattern(10'000));
            co_return took;
        };
        const double took = in_world(main(rate));
        EXPECT_GE(took, seconds - 1e-6) << rate.per_second;
        EXPECT_LE(took, seconds + 1.5) << rate.per_second; // the end is read by one more call
    }
}

TEST(StreamRate, WritesAtTheRateAndEndsAtOnce) {
    in_world([]() -> task<> {
        script_sink sink;
        rate_limited slow{sink, {.write = {.per_second = 100, .burst = 50}}};
        const auto begin = context_clock::now();
        EXPECT_EQ(co_await write_all(slow, pattern(1050)), 1050);
        const auto took = context_clock::now() - begin;
        EXPECT_GE(took, 10s);
        EXPECT_LE(took, 10s + 1ms);
        EXPECT_EQ(co_await slow.shutdown_write(), 0);
        EXPECT_EQ(context_clock::now() - begin, took);
        EXPECT_EQ(sink.text, pattern(1050));
        EXPECT_TRUE(sink.is_shut_down);
    }());
}

TEST(StreamRate, APauseAllowsABurstAndNotMore) {
    in_world([]() -> task<> {
        script_sink sink;
        rate_limited slow{sink, {.write = {.per_second = 100, .burst = 50}}};
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(co_await slow.write_some(pattern(1000)), 50);
            const auto begin = context_clock::now();
            EXPECT_EQ(co_await slow.write_some(pattern(1000)), 1);
            EXPECT_GE(context_clock::now() - begin, 10ms);
            co_await sleep_for(1h);
        }
    }());
}

TEST(StreamRate, AReadThatHasWaitedUsesUpTheBurst) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        rate_limited slow{a, {.read = {.per_second = 100, .burst = 50}}};
        char buf[1000];
        auto reading = spawn(slow.read_some(buf));
        co_await sleep_for(1h);
        EXPECT_EQ(co_await b.send_all(pattern(1000)), 1000);
        EXPECT_EQ(co_await reading, 50);
        const auto begin = context_clock::now();
        EXPECT_EQ((co_await slow.read_some(buf)), 1);
        EXPECT_GE(context_clock::now() - begin, 9ms);
    }());
}

TEST(StreamRate, TheDirectionsHaveLimitsOfTheirOwn) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        rate_limited slow{a, {.read = {.per_second = 100, .burst = 10}}};
        const auto begin = context_clock::now();
        EXPECT_EQ(co_await write_all(slow, pattern(10'000)), 10'000);
        EXPECT_LT(context_clock::now() - begin, 1s);
        EXPECT_EQ(co_await b.send_all(pattern(110)), 110);
        EXPECT_EQ(co_await b.shutdown_write(), 0);
        std::string got;
        const double took = co_await time_to_read(slow, got);
        EXPECT_EQ(got, pattern(110));
        EXPECT_GE(took, 1.0);
    }());
}

TEST(StreamRate, G3_ACancelledCallLosesNothingAndUsesNothing) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        rate_limited slow{a, {.read = {.per_second = 10, .burst = 10}}};
        EXPECT_EQ(co_await b.send_all(pattern(40)), 40);
        EXPECT_EQ(co_await b.shutdown_write(), 0);
        std::string got;
        const auto begin = context_clock::now();
        for (int cancelled = 0;;) {
            char buf[64];
            auto reading = spawn(slow.read_some(buf));
            co_await sleep_for(30ms);
            reading.cancel();
            const int n = co_await reading;
            if (n == 0) {
                EXPECT_GT(cancelled, 50);
                break;
            }
            if (n < 0) {
                EXPECT_EQ(n, -ECANCELED);
                ++cancelled;
                continue;
            }
            got.append(buf, static_cast<std::size_t>(n));
        }
        EXPECT_EQ(got, pattern(40));
        EXPECT_GE(context_clock::now() - begin, 3s);
        EXPECT_LE(context_clock::now() - begin, 3200ms);
    }());
}

TEST(StreamRate, FollowsTheSystemClockOutsideAWorld) {
    run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        rate_limited slow{std::move(a), {.write = {.per_second = 1'000'000, .burst = 1000}}};
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(co_await write_all(slow, pattern(21'000)), 21'000);
        EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
        std::string got(21'000, '\0');
        EXPECT_EQ(co_await b.recv_all(got), 21'000);
        EXPECT_EQ(got, pattern(21'000));
    }());
}

TEST(StreamRate, AReaderAndAProxyAreSlowedDown) {
    in_world([]() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        rate_limited slow{front, {.read = {.per_second = 1000, .burst = 100}}};
        auto proxy = spawn(duplex(slow, back));
        const auto begin = context_clock::now();
        EXPECT_EQ(co_await client.send_all(pattern(5100)), 5100);
        EXPECT_EQ(co_await client.shutdown_write(), 0);
        std::string got(5100, '\0');
        EXPECT_EQ(co_await server.recv_all(got), 5100);
        EXPECT_EQ(got, pattern(5100));
        EXPECT_GE(context_clock::now() - begin, 5s);
        EXPECT_EQ(co_await server.shutdown_write(), 0);
        EXPECT_EQ((co_await proxy).a_to_b, 5100U);
    }());
}

TEST(StreamCounted, CountsWhatWasTransferred) {
    run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        counting_stream c{std::move(a)};
        EXPECT_EQ(co_await write_all(c, "12345"), 5);
        EXPECT_EQ(co_await b.send_all("one\ntwo\nrest"), 12);
        EXPECT_EQ(co_await b.shutdown_write(), 0);
        buffered_reader r{c};
        EXPECT_EQ(co_await r.read_until('\n'), "one");
        EXPECT_EQ(c.bytes_read(), 12U) << "also what is still in the reader's buffer";
        char buf[32];
        EXPECT_EQ((co_await r.read_some(buf)), 8);
        EXPECT_EQ((co_await r.read_some(buf)), 0);
        EXPECT_EQ(c.bytes_read(), 12U);
        EXPECT_EQ(c.bytes_written(), 5U);
        EXPECT_EQ(co_await c.shutdown_write(), 0);
        EXPECT_EQ(co_await c.write_some("x"), -EPIPE);
        EXPECT_EQ(c.bytes_written(), 5U) << "errors are not counted";
        EXPECT_NE(c.stream().native_handle(), -1);
    }());
}

TEST(StreamCounted, CountsBothEndsOfAProxy) {
    run([]() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        counting_stream a{front};
        counting_stream b{rate_limited{back, {}}};
        auto proxy = spawn(duplex(a, b));
        EXPECT_EQ(co_await client.send_all(pattern(100'000)), 100'000);
        EXPECT_EQ(co_await client.shutdown_write(), 0);
        std::string got(100'000, '\0');
        EXPECT_EQ(co_await server.recv_all(got), 100'000);
        EXPECT_EQ(co_await server.send_all("answer"), 6);
        EXPECT_EQ(co_await server.shutdown_write(), 0);
        co_await proxy;
        EXPECT_EQ(a.bytes_read(), 100'000U);
        EXPECT_EQ(b.bytes_written(), 100'000U);
        EXPECT_EQ(b.bytes_read(), 6U);
        EXPECT_EQ(a.bytes_written(), 6U);
    }());
}

} // namespace
