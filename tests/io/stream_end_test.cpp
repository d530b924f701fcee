// Destroying a stream, and streams that outlive a run: nothing leaks, no await hangs.

#include "io/stream_support.hpp"

#include <deque>
#include <memory>
#include <optional>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::listener;
using coil_test::manual;
using coil_test::socket_pair;
using io_test::pool_of;
using io_test::put;
using io_test::some_turns;

namespace {

class StreamEnd : public io_test::EachFeatureSet {};
COIL_ON_EACH_FEATURE_SET(StreamEnd);

manual waits_for_ever(io::recv_stream& incoming) {
    (void)co_await incoming.next();
    ADD_FAILURE() << "the coroutine was resumed";
}

TEST_P(StreamEnd, G2_TheFrameThatWaitsIsDestroyed) {
    const socket_pair s;
    auto main = [](const socket_pair& pair) -> task<> {
        buffer_pool pool;
        auto incoming = io::recv_multishot(pair.a, pool);
        for (int turns = 0; turns < 5; ++turns) {
            manual victim = waits_for_ever(incoming);
            victim.start();
            co_await some_turns(turns / 2);
            if (turns % 2 == 1) {
                put(pair.b, "x");
                co_await yield(); // from the second round on, the victim is ready to resume
            }
            victim.destroy();
            if (turns % 2 == 1) {
                EXPECT_EQ((co_await incoming.next()).result(), 1);
            }
        }
        put(pair.b, "data");
        EXPECT_EQ((co_await incoming.next())->text(), "data");
        EXPECT_EQ(pool.available(), pool.size());
    };
    run(main(s));
}

TEST_P(StreamEnd, G3_TheStreamIsDestroyedWhileACoroutineWaitsForIt) {
    auto waits = [](io::recv_stream& incoming) -> task<int> {
        co_return (co_await incoming.next()).result();
    };
    auto main = [](auto f, int turns, bool data) -> task<> {
        const socket_pair s;
        buffer_pool pool;
        auto incoming = std::make_unique<io::recv_stream>(s.a, pool, 0);
        auto waiter = coil::spawn(f(*incoming));
        co_await yield(); // the waiter begins to wait
        co_await some_turns(turns);
        if (data) {
            put(s.b, "data");
            // For some values of `turns` the waiter is in the ready queue, behind this coroutine.
            co_await some_turns(turns % 3);
        }
        if (waiter.done()) {
            EXPECT_EQ(co_await waiter, 4);
        } else {
            incoming.reset();
            EXPECT_EQ(co_await waiter, -ECANCELED);
        }
        incoming.reset();
        EXPECT_EQ(pool.available(), pool.size());
    };
    for (int turns = 0; turns < 8; ++turns) {
        run(main(waits, turns, false));
        run(main(waits, turns, true));
    }
}

TEST_P(StreamEnd, G3_TheStreamIsDestroyedWhenItsWaiterIsReadyAlready) {
    auto waits = [](io::recv_stream& incoming) -> task<int> {
        co_return (co_await incoming.next()).result();
    };
    auto main = [](auto f) -> task<> {
        const socket_pair s;
        buffer_pool pool;
        auto incoming = std::make_unique<io::recv_stream>(s.a, pool, 0);
        inplace_stop_source stop;
        auto waiter = coil::spawn(with_stop_token(f(*incoming), stop.get_token()));
        co_await some_turns();
        stop.request_stop(); // makes it ready; it has not resumed yet
        incoming.reset();
        EXPECT_EQ(co_await waiter, -ECANCELED);
    };
    run(main(waits));
}

TEST_P(StreamEnd, G4_UntakenResultsAreReturnedAndClosed) {
    auto main = [](int turns) -> task<> {
        const socket_pair s;
        const listener l;
        buffer_pool pool(pool_of(16, 64));
        std::vector<coil_test::descriptor> clients;
        {
            auto incoming = io::recv_multishot(s.a, pool);
            auto connections = io::accept_multishot(l.socket);
            EXPECT_EQ((co_await timeout(incoming.next(), 0ms)).result(), -ETIMEDOUT);
            EXPECT_EQ(co_await timeout(connections.next(), 0ms), -ETIMEDOUT);
            for (int i = 0; i < 5; ++i) {
                put(s.b, "data");
                clients.push_back(l.connect());
                co_await some_turns(turns);
            }
        }
        EXPECT_EQ(pool.available(), pool.size());
    }; // leaked descriptors are found at the end of the test
    for (int turns = 0; turns < 4; ++turns) {
        run(main(turns));
    }
}

TEST_P(StreamEnd, G5_StopWithArmedStreamsAndUntakenResults) {
    auto main = [](io_context& context, buffer_pool& pool) -> task<> {
        const socket_pair s;
        const socket_pair idle;
        const listener l;
        auto incoming = io::recv_multishot(s.a, pool);
        auto silent = io::recv_multishot(idle.a, pool);
        auto connections = io::accept_multishot(l.socket);
        EXPECT_EQ(co_await timeout(connections.next(), 0ms), -ETIMEDOUT);
        EXPECT_EQ((co_await timeout(incoming.next(), 0ms)).result(), -ETIMEDOUT);
        const coil_test::descriptor client = l.connect();
        put(s.b, "data");
        co_await some_turns();
        context.stop();
        (void)co_await silent.next();
        ADD_FAILURE() << "the coroutine was resumed";
    };
    buffer_pool pool;
    for (int i = 0; i < 3; ++i) {
        context_.co_spawn(main(context_, pool));
        context_.run();
        EXPECT_EQ(pool.available(), pool.size());
    }
}

TEST_P(StreamEnd, G5_AStreamThatNoFrameOwnsKeepsNoRunAlive) {
    const socket_pair s;
    buffer_pool pool;
    io::recv_stream incoming(s.a, pool, 0);
    auto one = [](io::recv_stream& in, const socket_pair& pair) -> task<> {
        put(pair.b, "data");
        EXPECT_EQ((co_await in.next())->text(), "data");
    };
    // Between the runs nothing is in flight, and the next run sees no stale completion.
    for (int i = 0; i < 3; ++i) {
        run(one(incoming, s));
    }
    std::thread([&] { run(one(incoming, s)); }).join();
    run(one(incoming, s));
    EXPECT_EQ(pool.available(), pool.size());
}

TEST_P(StreamEnd, G5_AStreamThatOutlivesAStopAndItsContext) {
    const socket_pair s;
    const listener l;
    buffer_pool pool;
    std::optional<io_context> context(std::in_place, io_test::options_of(GetParam()));
    io::recv_stream incoming(s.a, pool, 0);
    std::optional<io::accept_stream> connections(std::in_place, l.socket, 0, false);
    std::optional<io::accept_stream> direct(std::in_place, l.socket, 0, true);
    std::vector<coil_test::descriptor> clients;
    auto main = [](io_context& c, io::recv_stream& in, io::accept_stream& one,
                   io::accept_stream& other, const listener& server,
                   std::vector<coil_test::descriptor>& all) -> task<> {
        EXPECT_EQ((co_await timeout(in.next(), 0ms)).result(), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(one.next(), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(other.next(), 1ms), -ETIMEDOUT);
        for (int i = 0; i < 3; ++i) {
            all.push_back(server.connect());
        }
        co_await some_turns();
        c.stop();
        (void)co_await in.next();
        ADD_FAILURE() << "the coroutine was resumed";
    };
    context->co_spawn(main(*context, incoming, *connections, *direct, l, clients));
    context->run();
    auto receives_after_the_stop = [](io::recv_stream& in, const socket_pair& pair) -> task<> {
        put(pair.b, "data");
        EXPECT_EQ((co_await in.next())->text(), "data");
    };
    coil_test::run_on(*context, receives_after_the_stop(incoming, s));
    context.reset();
    EXPECT_EQ(pool.available(), pool.size());
    connections.reset(); // closes accepted sockets, but no slots of a destroyed ring
    direct.reset();
}

TEST_P(StreamEnd, G5_ThousandsOfThemThatNoFrameOwns) {
    constexpr std::size_t count = 1500; // cancelling them takes more than one request
    const socket_pair s;
    buffer_pool pool(pool_of(2048, 64));
    std::deque<io::recv_stream> streams;
    auto main = [](std::deque<io::recv_stream>& all, const socket_pair& pair, buffer_pool& p,
                   io_context* stop) -> task<> {
        for (std::size_t i = 0; i < count; ++i) {
            if (i == all.size()) {
                all.emplace_back(pair.a, p, 0);
            }
            EXPECT_EQ((co_await timeout(all[i].next(), 0ms)).result(), -ETIMEDOUT);
        }
        if (stop != nullptr) {
            stop->stop();
            co_await sleep_for(1h);
        }
    };
    run(main(streams, s, pool, nullptr));
    context_.co_spawn(main(streams, s, pool, &context_));
    context_.run();
    EXPECT_EQ(pool.available(), pool.size());
}

TEST_P(StreamEnd, G5_HeldBackByTheBoundAndThenStopped) {
    io_context_options options = io_test::options_of(GetParam());
    options.max_in_flight = 2;
    io_context context(options);
    const socket_pair s;
    buffer_pool pool;
    std::deque<io::recv_stream> streams;
    auto main = [](io_context& c, std::deque<io::recv_stream>& all, const socket_pair& pair,
                   buffer_pool& p) -> task<> {
        auto forever = [](int fd) -> task<> {
            char byte = 0;
            co_await io::recv(fd, {&byte, 1});
        };
        co_spawn(forever(pair.b));
        co_spawn(forever(pair.b));
        co_await yield();
        for (int i = 0; i < 4; ++i) {
            all.emplace_back(pair.a, p, 0);
            EXPECT_EQ((co_await timeout(all.back().next(), 0ms)).result(), -ETIMEDOUT);
        }
        c.stop();
        co_await sleep_for(1h);
    };
    context.co_spawn(main(context, streams, s, pool));
    context.run();
    EXPECT_EQ(pool.available(), pool.size());
    auto again = [](io::recv_stream& in, const socket_pair& pair) -> task<> {
        put(pair.b, "data");
        EXPECT_EQ((co_await in.next())->text(), "data");
    };
    coil_test::run_on(context, again(streams.back(), s));
    EXPECT_EQ(pool.available(), pool.size());
}

} // namespace
