// Adapters of streams: rate_limited, counting_stream, idle_limited, and the limit of copy() and
// duplex().

#include "stream/support.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

namespace sim = coil::sim;

static_assert(byte_stream<rate_limited<net::socket>> && byte_stream<rate_limited<pipe_end&>>);
static_assert(byte_stream<counting_stream<net::socket>> && byte_stream<idle_limited<net::socket&>>);
static_assert(byte_source<counting_stream<script_source>> &&
              !byte_sink<counting_stream<script_source>>);
static_assert(byte_sink<rate_limited<script_sink&>> && !byte_source<rate_limited<script_sink&>>);
static_assert(!is_plain_socket<counting_stream<net::socket>>, "splice(2) would pass by it");

/// Runs a task in a simulated world.
template <class T>
T in_world(task<T> work, std::uint64_t seed = 1) {
    sim::world w{seed};
    auto done = w.host("host").spawn(std::move(work));
    EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1000h));
    return done.get();
}

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

TEST(StreamRate, OnTheClockOfTheSystem) {
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

TEST(StreamCounted, BothEndsOfAProxy) {
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

TEST(StreamIdle, EveryByteRestartsTheLimit) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        idle_limited in{a, 10s};
        auto sender = spawn([](net::socket& to) -> task<> {
            for (int i = 0; i < 100; ++i) {
                co_await sleep_for(9s);
                EXPECT_EQ(co_await to.send_all("x"), 1);
            }
        }(b));
        buffered_reader reader{in};
        const auto begin = context_clock::now();
        std::string text(101, '\0');
        EXPECT_EQ(co_await reader.read_exact(text), -ETIMEDOUT);
        EXPECT_GE(context_clock::now() - begin, 910s);
        EXPECT_LE(context_clock::now() - begin, 911s);
        EXPECT_EQ(reader.buffered().size() + 100, 100U) << "read_exact() had taken them";
        co_await sender;
        EXPECT_EQ(co_await b.send_all("y"), 1);
        char buf[4];
        EXPECT_EQ((co_await in.read_some(buf)), 1) << "it stays usable";
    }());
}

TEST(StreamIdle, TheOtherDirectionIsProgressAndAPauseBetweenCallsIsNot) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        idle_limited both{a, 10s};
        co_await sleep_for(1h);
        char buf[4];
        const auto begin = context_clock::now();
        auto reading = spawn(both.read_some(buf));
        for (int i = 0; i < 5; ++i) {
            co_await sleep_for(8s);
            EXPECT_EQ(co_await both.write_some("x"), 1);
        }
        EXPECT_EQ(co_await reading, -ETIMEDOUT);
        EXPECT_GE(context_clock::now() - begin, 50s);
        EXPECT_LE(context_clock::now() - begin, 51s);
    }());
}

TEST(StreamIdle, AWriterThatIsNotReadAndACancelledReader) {
    run([]() -> task<> {
        auto [a, b] = net::socket::pair();
        idle_limited both{a, 20ms};
        EXPECT_EQ(co_await write_all(both, pattern(8 << 20)), -ETIMEDOUT);
        idle_limited patient{b, 1h};
        idle_limited nobody_writes{a, 1h};
        char buf[4];
        auto reading = spawn(nobody_writes.read_some(buf));
        co_await yield();
        reading.cancel();
        EXPECT_EQ(co_await reading, -ECANCELED);
        EXPECT_EQ((co_await patient.read_some(buf)), 4);
    }());
}

template <class T>
task<std::errc> error_of(task<T> work) {
    try {
        static_cast<void>(co_await std::move(work));
    } catch (const std::system_error& e) {
        co_return static_cast<std::errc>(e.code().value());
    }
    co_return std::errc();
}

TEST(StreamIdle, OfCopy) {
    in_world([]() -> task<> {
        auto [a, b] = net::socket::pair();
        script_sink sink;
        auto copying = spawn(error_of(copy(a, sink, {.idle = 10s})));
        const auto begin = context_clock::now();
        for (int i = 0; i < 4; ++i) {
            co_await sleep_for(9s);
            EXPECT_EQ(co_await b.send_all("x"), 1);
        }
        EXPECT_EQ(co_await copying, std::errc::timed_out);
        EXPECT_GE(context_clock::now() - begin, 46s);
        EXPECT_LE(context_clock::now() - begin, 47s);
        EXPECT_EQ(sink.text, "xxxx");
        script_source source(pattern(1000), 10);
        script_sink second;
        EXPECT_EQ(co_await copy(source, second, {.idle = 10s}), 1000U);
        EXPECT_EQ(co_await copy(source, second, {}), 0U) << "no limit";
    }());
}

TEST(StreamIdle, OfCopyReportsTheFailureOfAStream) {
    run([]() -> task<> {
        script_source source(pattern(10), 3, 2, -ECONNRESET);
        script_sink sink;
        EXPECT_EQ(co_await error_of(copy(source, sink, {.idle = 1h})), std::errc::connection_reset);
        auto [a, b] = net::socket::pair();
        auto copying = spawn(error_of(copy(a, b, {.idle = 1h})));
        co_await yield();
        copying.cancel();
        EXPECT_EQ(co_await copying, std::errc::operation_canceled);
    }());
}

/// Owns the sockets: if it ends early, their peers notice.
task<std::errc> idle_proxy(net::socket a, net::socket b, std::chrono::milliseconds limit) {
    co_return co_await error_of(duplex(a, b, {.idle = limit}));
}

/// Traffic in one direction only keeps both open.
task<> expect_idle_duplex(std::chrono::milliseconds limit, std::chrono::milliseconds step,
                          std::size_t size) {
    auto [client, front] = net::socket::pair();
    auto [back, server] = net::socket::pair();
    auto proxy = spawn(idle_proxy(std::move(front), std::move(back), limit));
    const auto begin = context_clock::now();
    for (int i = 0; i < 4; ++i) {
        co_await sleep_for(step);
        std::string got(size, '\0');
        auto receiving = spawn([](net::socket& from, std::string& text) -> task<> {
            EXPECT_EQ(co_await from.recv_all(text), static_cast<int>(text.size()));
        }(client, got));
        EXPECT_EQ(co_await server.send_all(pattern(size)), static_cast<int>(size));
        co_await receiving;
        EXPECT_TRUE(got == pattern(size));
    }
    const auto last = context_clock::now();
    EXPECT_EQ(co_await proxy, std::errc::timed_out);
    EXPECT_GE(last - begin, 4 * step);
    EXPECT_GE(context_clock::now() - begin, 4 * step + limit);
}

TEST(StreamIdle, OfDuplexOfSockets) {
    for (const std::size_t size : {1, 3'000'000}) { // copied, spliced
        run(expect_idle_duplex(1500ms, 400ms, size));
    }
}

TEST(StreamIdle, OfDuplexInAWorld) {
    sim::for_each_seed(
        10, [](std::uint64_t seed) { in_world(expect_idle_duplex(10s, 9s, 5000), seed); });
}

TEST(StreamIdle, ADuplexThatEndsInTimeReturnsItsCounts) {
    run([]() -> task<> {
        auto [client, front] = net::socket::pair();
        auto [back, server] = net::socket::pair();
        auto proxy = spawn(duplex(front, back, {.idle = 1h}));
        EXPECT_EQ(co_await client.send_all("question"), 8);
        EXPECT_EQ(co_await client.close(), 0);
        EXPECT_EQ(co_await server.shutdown_write(), 0);
        const duplex_counts counts = co_await proxy;
        EXPECT_EQ(counts.a_to_b, 8U);
        EXPECT_EQ(counts.b_to_a, 0U);
    }());
}

} // namespace
