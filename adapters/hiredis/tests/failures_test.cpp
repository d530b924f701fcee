// coil::hiredis when the server or the network fails, and when commands are cancelled.

#include "server.hpp"
#include "support/cutting_proxy.hpp"

#include <coil/coil.hpp>

namespace redis_test {

namespace {

using hiredis::connection;

class HiredisFailures : public RedisServer {};

TEST_F(HiredisFailures, AFailedConnectNamesTheServer) {
    run_checked([]() -> task<> {
        const hiredis::options nowhere{.port = free_port()};
        const auto text =
            co_await message_of<hiredis::connection_error>(connection::connect(nowhere));
        expect_contains(text, nowhere.name() + ": connect: ");
    }());
}

TEST_F(HiredisFailures, AKilledServerEndsOutstandingAndLaterCommands) {
    run_checked([](hiredis::options to, server_process& server) -> task<> {
        auto c = co_await connection::connect(to);
        auto killer = [&]() -> task<> {
            co_await sleep_for(20ms);
            server.kill();
        };
        const auto [a, b, nothing] = co_await when_all(
            message_of<hiredis::connection_error>(c.call("BLPOP", "none", 0)),
            message_of<hiredis::connection_error>(c.call("GET", "key")), killer());
        static_cast<void>(nothing);
        expect_contains(a, to.name() + ": BLPOP: ");
        expect_contains(b, to.name() + ": GET: ");
        EXPECT_FALSE(c.is_open());
        co_await message_of<hiredis::connection_error>(c.call("PING"));
        auto p = c.pipelined();
        p.call("PING");
        co_await message_of<hiredis::connection_error>(std::move(p).execute());
    }(options(), server()));
}

TEST_F(HiredisFailures, AResetAfterAnyNumberOfBytesIsReported) {
    cutting_proxy proxy(server().port());
    const std::string value(300, 'v');
    for (const std::uint64_t bytes : {1, 2, 5, 6, 7, 20, 305, 306, 307, 311, 312, 2000, 20000}) {
        proxy.cut_after(bytes);
        run_checked([](hiredis::options to, const std::string& v) -> task<> {
            auto c = co_await connection::connect(to);
            std::size_t replies = 0;
            const auto many = [&]() -> task<> {
                for (;;) {
                    co_await c.call("SET", "key", v);
                    EXPECT_EQ((co_await c.call("GET", "key")).text(), v);
                    ++replies;
                }
            };
            const auto text = co_await message_of<hiredis::connection_error>(limited(many(), 10s));
            expect_contains(text, to.name());
            EXPECT_LE(replies, 100U);
        }({.port = proxy.port()}, value));
    }
}

TEST_F(HiredisFailures, ACommandThatTimesOutLeavesTheRepliesInOrder) {
    cutting_proxy proxy(server().port());
    run_checked([](hiredis::options to, cutting_proxy& network) -> task<> {
        auto c = co_await connection::connect(to);
        co_await c.call("SET", "key", "value");
        network.stall();
        for (int i = 0; i < 3; ++i) {
            const auto code = co_await code_of(limited(c.call("ECHO", "late"), 10ms));
            EXPECT_EQ(code, std::errc::timed_out);
        }
        EXPECT_FALSE(c.is_clean());
        network.resume();
        EXPECT_EQ((co_await c.call("GET", "key")).text(), "value");
        EXPECT_TRUE(c.is_clean());
    }({.port = proxy.port()}, proxy));
}

TEST_F(HiredisFailures, ACancellationAtAnyMomentLosesNoReplyOfOthers) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        const auto after = [](int turns) -> task<> {
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
        };
        const auto echo = [&](std::string text) -> task<> {
            EXPECT_EQ((co_await c.call("ECHO", text)).text(), text);
        };
        for (int turns = 0; turns < 200; ++turns) {
            auto p = c.pipelined();
            p.call("ECHO", "x").call("ECHO", "y");
            co_await when_all(when_any(c.call("ECHO", "lost"), after(turns)),
                              echo(std::to_string(turns)),
                              when_any(std::move(p).execute(), after(turns / 2)));
            co_await when_any(connection::connect(to), after(turns));
            co_await when_any(hiredis::subscriber::connect(to), after(turns));
        }
        co_await echo("end");
        EXPECT_TRUE(c.is_clean());
    }(options()));
}

TEST_F(HiredisFailures, FramesMayBeDestroyedWhileCommandsAreOutstanding) {
    const std::set<int> before = coil_test::open_descriptors();
    for (int turns = 0; turns < 40; ++turns) {
        io_context context;
        context.co_spawn([](hiredis::options to) -> task<> {
            auto c = co_await connection::connect(to);
            hiredis::pool pool(to, 2);
            auto s = co_await hiredis::subscriber::connect(to);
            co_await s.subscribe({"channel"});
            auto messages = s.messages();
            auto lease = co_await pool.acquire();
            co_await when_all(c.call("BLPOP", "none", 0), lease->call("BLPOP", "none", 0),
                              messages.next());
        }(options()));
        context.co_spawn([](int n) -> task<> {
            co_await sleep_for(std::chrono::microseconds(100 * n));
            this_context().stop();
        }(turns));
        context.run();
    } // destroying the context destroys the frames
    expect_descriptors(before);
}

TEST_F(HiredisFailures, ADestroyedConnectionEndsItsCommands) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = std::make_unique<connection>(co_await connection::connect(to));
        const auto destroy = [&]() -> task<> {
            co_await sleep_for(5ms);
            c.reset();
        };
        const auto [text, nothing] = co_await when_all(
            message_of<hiredis::connection_error>(c->call("BLPOP", "none", 0)), destroy());
        static_cast<void>(nothing);
        expect_contains(text, "BLPOP: the connection was closed");
    }(options()));
}

} // namespace

} // namespace redis_test
