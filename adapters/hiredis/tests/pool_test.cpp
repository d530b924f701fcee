// hiredis::pool and hiredis::subscriber against a redis-server.

#include "server.hpp"
#include "support/cutting_proxy.hpp"

#include <coil/coil.hpp>

namespace redis_test {

namespace {

using hiredis::connection;

class HiredisPool : public RedisServer {};
class HiredisSubscriber : public RedisServer {};

task<long long> use(hiredis::pool& pool) {
    auto c = co_await pool.acquire();
    co_await c->call("PING");
    co_return (co_await c->call("INCR", "borrowed")).integer();
}

TEST_F(HiredisPool, LimitsTheConnectionsAndUsesThemAgain) {
    run_checked([](hiredis::options to) -> task<> {
        hiredis::pool pool(to, 3);
        scope tasks;
        for (int i = 0; i < 60; ++i) {
            tasks.spawn(use(pool));
        }
        co_await tasks.join();
        EXPECT_EQ(pool.idle(), 3U);
        auto c = co_await pool.acquire();
        EXPECT_EQ((co_await c->call("GET", "borrowed")).text(), "60");
        const auto info = co_await c->call("INFO", "stats");
        expect_contains(info.text(), "total_connections_received:");
        const std::string text(info.text());
        const std::string name = "total_connections_received:";
        // Three from the pool, and one from server_process, which waits for the server.
        EXPECT_LE(std::stol(text.substr(text.find(name) + name.size())), 4);
    }(options()));
}

TEST_F(HiredisPool, AConnectionThatIsNotCleanIsNotGivenBack) {
    run_checked([](hiredis::options to) -> task<> {
        hiredis::pool pool(to, 1);
        {
            auto c = co_await pool.acquire();
            co_await c->call("MULTI");
        }
        EXPECT_EQ(pool.idle(), 0U);
        {
            auto c = co_await pool.acquire();
            co_await c->call("multi");
            co_await c->call("SET", "key", 1);
            EXPECT_EQ((co_await c->call("EXEC")).size(), 1U);
        }
        EXPECT_EQ(pool.idle(), 1U);
        {
            auto c = co_await pool.acquire();
            auto p = c->pipelined();
            p.call("PING").call("SELECT", 1);
            co_await std::move(p).execute();
        }
        EXPECT_EQ(pool.idle(), 0U);
        {
            auto c = co_await pool.acquire();
            const auto code = co_await code_of(limited(c->call("BLPOP", "none", 0), 5ms));
            EXPECT_EQ(code, std::errc::timed_out);
        }
        EXPECT_EQ(pool.idle(), 0U);
        auto c = co_await pool.acquire();
        EXPECT_EQ((co_await c->call("GET", "key")).text(), "1");
        EXPECT_EQ(co_await code_of(limited(pool.acquire(), 5ms)), std::errc::timed_out);
    }(options()));
}

TEST_F(HiredisPool, ReplacesConnectionsThatBroke) {
    cutting_proxy proxy(server().port());
    run_checked([](hiredis::options to, cutting_proxy& network, server_process& server) -> task<> {
        hiredis::pool pool(to, 2);
        co_await use(pool);
        EXPECT_EQ(pool.idle(), 1U);
        network.cut_once();
        co_await sleep_for(20ms); // the idle connection learns of it
        EXPECT_EQ(co_await use(pool), 2);
        {
            auto c = co_await pool.acquire();
            network.cut_once();
            co_await message_of<hiredis::connection_error>(c->call("BLPOP", "none", 0));
        }
        EXPECT_EQ(pool.idle(), 0U);
        EXPECT_EQ(co_await use(pool), 3);
        server.kill();
        co_await sleep_for(20ms);
        co_await message_of<hiredis::connection_error>(use(pool));
        server.restart();
        EXPECT_EQ(co_await use(pool), 1);
    }({.port = proxy.port()}, proxy, server()));
}

TEST_F(HiredisSubscriber, ReceivesMessagesOfChannelsAndPatterns) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        auto s = co_await hiredis::subscriber::connect(to);
        co_await s.subscribe({"a", "b"});
        co_await s.psubscribe({"n.*"});
        EXPECT_EQ((co_await c.call("PUBLISH", "a", "1")).integer(), 1);
        EXPECT_EQ((co_await c.call("PUBLISH", "n.x", "2")).integer(), 1);
        EXPECT_EQ((co_await c.call("PUBLISH", "b", "3")).integer(), 1);
        auto messages = s.messages();
        auto m = co_await messages.next();
        EXPECT_EQ(m->channel + m->pattern + m->payload, "a1");
        m = co_await messages.next();
        EXPECT_EQ(m->channel + m->pattern + m->payload, "n.xn.*2");
        m = co_await messages.next();
        EXPECT_EQ(m->channel + m->pattern + m->payload, "b3");
        co_await s.unsubscribe({"a"});
        co_await s.punsubscribe({"n.*"});
        EXPECT_EQ((co_await c.call("PUBLISH", "a", "4")).integer(), 0);
        EXPECT_EQ((co_await c.call("PUBLISH", "n.x", "4")).integer(), 0);
        EXPECT_EQ((co_await c.call("PUBLISH", "b", "5")).integer(), 1);
        EXPECT_EQ((co_await messages.next())->payload, "5");
    }(options()));
}

TEST_F(HiredisSubscriber, SubscribesWhileAnotherTaskReceives) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        auto s = co_await hiredis::subscriber::connect(to);
        std::size_t received = 0;
        const auto receive = [&]() -> task<> {
            auto messages = s.messages();
            while (received < 200) {
                EXPECT_EQ((co_await messages.next())->payload, std::to_string(received++));
            }
        };
        const auto publish = [&]() -> task<> {
            co_await s.subscribe({"0"});
            for (int i = 0; i < 200; ++i) {
                if (i % 10 == 0) {
                    co_await s.subscribe({std::to_string(i + 1)});
                }
                co_await c.call("PUBLISH", i / 10 * 10 + (i == 0 ? 0 : 1), i);
            }
        };
        co_await timeout(when_all(receive(), publish()), 10s);
        EXPECT_EQ(received, 200U);
    }(options()));
}

TEST_F(HiredisSubscriber, ACancelledWaitLosesNoMessage) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        auto s = co_await hiredis::subscriber::connect(to);
        co_await s.subscribe({"a"});
        int expected = 0;
        const auto receive = [&]() -> task<> {
            auto messages = s.messages();
            while (expected < 300) {
                EXPECT_EQ((co_await messages.next())->payload, std::to_string(expected));
                ++expected;
            }
        };
        const auto publish = [&]() -> task<> {
            for (int i = 0; i < 300; ++i) {
                co_await c.call("PUBLISH", "a", i);
            }
        };
        auto published = spawn(publish());
        for (int i = 0; expected < 300 && i < 100000; ++i) {
            try {
                co_await timeout(receive(), std::chrono::microseconds(i % 300));
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
            }
        }
        co_await std::move(published);
        EXPECT_EQ(expected, 300);
    }(options()));
}

TEST_F(HiredisSubscriber, AKilledServerEndsTheMessages) {
    run_checked([](hiredis::options to, server_process& server) -> task<> {
        auto s = co_await hiredis::subscriber::connect(to);
        co_await s.subscribe({"a"});
        auto messages = s.messages();
        const auto next = [&]() -> task<> { co_await messages.next(); };
        const auto kill = [&]() -> task<> {
            co_await sleep_for(10ms);
            server.kill();
        };
        const auto [text, nothing] =
            co_await when_all(message_of<hiredis::connection_error>(next()), kill());
        static_cast<void>(nothing);
        expect_contains(text, to.name() + ": messages: ");
        co_await message_of<hiredis::connection_error>(s.subscribe({"b"}));
    }(options(), server()));
}

} // namespace

} // namespace redis_test
