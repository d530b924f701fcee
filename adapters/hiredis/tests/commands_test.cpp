// Commands, pipelines and options of coil::hiredis against a redis-server.

#include "server.hpp"

#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

namespace redis_test {

namespace {

using hiredis::connection;

class HiredisCommands : public RedisServer {};

TEST_F(HiredisCommands, SendsHiredisFormatsAndListsOfArguments) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        const std::string_view binary("a\0\r\n%b", 6);
        const auto set =
            co_await c.command("SET %s %b", "key", binary.data(), std::size_t{binary.size()});
        EXPECT_EQ(set.text(), "OK");
        EXPECT_EQ((co_await c.call("GET", "key")).text(), binary);
        EXPECT_EQ((co_await c.command("INCRBY n %d", 40)).integer(), 40);
        EXPECT_EQ((co_await c.call("INCRBY", "n", 2L)).integer(), 42);
        EXPECT_EQ((co_await c.call("INCRBYFLOAT", "f", 0.5)).text(), "0.5");
        EXPECT_TRUE((co_await c.call("GET", std::string("none"))).is_nil());

        const std::vector<std::string> values{"x", "", "z"};
        EXPECT_EQ((co_await c.call("RPUSH", "list", values)).integer(), 3);
        const auto list = co_await c.call("LRANGE", "list", 0, -1);
        EXPECT_EQ(list.size(), 3U);
        EXPECT_EQ(list[1].text(), "");
        EXPECT_EQ(list[2].text(), "z");
        EXPECT_THROW(static_cast<void>(list[3]), std::out_of_range);
        EXPECT_THROW(static_cast<void>(list.text()), hiredis::error);
        EXPECT_THROW(static_cast<void>(list[0].integer()), hiredis::error);
        EXPECT_THROW(static_cast<void>(c.command("SET %y", 1)), std::invalid_argument);
    }(options()));
}

TEST_F(HiredisCommands, ArgumentsAreCopiedBeforeTheCallReturns) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        std::string value = "first";
        auto set = c.call("SET", "key", value);
        value = "other";
        co_await std::move(set);
        EXPECT_EQ((co_await c.call("GET", "key")).text(), "first");
    }(options()));
}

TEST_F(HiredisCommands, ARefusedCommandNamesTheServerAndTheCommand) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        co_await c.call("SET", "key", "text");
        const auto text = co_await message_of<hiredis::command_error>(c.call("LPUSH", "key", 1));
        expect_contains(text, to.name() + ": LPUSH: WRONGTYPE");
        EXPECT_TRUE(c.is_clean());
        co_await message_of<std::invalid_argument>(c.call("subscribe", "channel"));
        EXPECT_EQ((co_await c.call("GET", "key")).text(), "text");
    }(options()));
}

TEST_F(HiredisCommands, ConcurrentCommandsArePipelined) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        auto reads = [&]() -> task<long> {
            const auto info = co_await c.call("INFO", "stats");
            const std::string text(info.text());
            const std::string name = "total_reads_processed:";
            co_return std::stol(text.substr(text.find(name) + name.size()));
        };
        std::set<long long> values;
        auto count = [&]() -> task<> {
            for (int i = 0; i < 10; ++i) {
                values.insert((co_await c.call("INCR", "n")).integer());
            }
        };
        const long before = co_await reads();
        scope tasks;
        for (int i = 0; i < 100; ++i) {
            tasks.spawn(count());
        }
        co_await tasks.join();
        const long read = co_await reads() - before;
        EXPECT_EQ(values.size(), 1000U);
        EXPECT_EQ(*values.rbegin(), 1000);
        EXPECT_LE(read, 200) << "1000 commands were sent one by one";
    }(options()));
}

TEST_F(HiredisCommands, APipelineReturnsOneReplyForEachCommand) {
    run_checked([](hiredis::options to) -> task<> {
        auto c = co_await connection::connect(to);
        auto p = c.pipelined();
        p.call("SET", "a", 1).command("INCR %s", "a").call("LPUSH", "a", 1).call("GET", "a");
        EXPECT_EQ(p.size(), 4U);
        const auto replies = co_await std::move(p).execute();
        EXPECT_EQ(replies.size(), 4U);
        EXPECT_EQ(replies[0].text(), "OK");
        EXPECT_EQ(replies[1].integer(), 2);
        EXPECT_TRUE(replies[2].is_error());
        EXPECT_EQ(replies[3].text(), "2");
        EXPECT_TRUE((co_await c.pipelined().execute()).empty());

        auto large = c.pipelined();
        const std::string block(100000, 'x');
        for (int i = 0; i < 200; ++i) {
            large.call("ECHO", block);
        }
        for (const auto& r : co_await std::move(large).execute()) {
            EXPECT_EQ(r.text().size(), block.size());
        }
    }(options()));
}

TEST_F(HiredisCommands, ConnectsThroughAUnixSocket) {
    run_checked([](hiredis::options tcp, std::string path) -> task<> {
        // The server listens on TCP first, and answers once it listens on the Unix socket as well.
        auto first = co_await connection::connect(tcp);
        co_await first.call("PING");
        auto c = co_await connection::connect({.host = path});
        EXPECT_EQ((co_await c.call("PING")).text(), "PONG");
        EXPECT_EQ(c.server(), path + "/0");
        const auto text = co_await message_of<hiredis::connection_error>(
            connection::connect({.host = path + ".none"}));
        expect_contains(text, path + ".none/0: connect: No such file");
    }(options(), socket_path()));
}

TEST_F(HiredisCommands, AuthenticatesAndSelectsTheDatabase) {
    start({"--requirepass", "secret"});
    run_checked([](hiredis::options to) -> task<> {
        to.password = "secret";
        auto zero = co_await connection::connect(to);
        to.database = 3;
        auto three = co_await connection::connect(to);
        EXPECT_TRUE(three.is_clean());
        co_await three.call("SET", "key", "value");
        EXPECT_TRUE((co_await zero.call("GET", "key")).is_nil());
        EXPECT_EQ((co_await three.call("GET", "key")).text(), "value");
        to.user = "default";
        auto named = co_await connection::connect(to);
        EXPECT_EQ((co_await named.call("GET", "key")).text(), "value");

        to.password = "wrong";
        auto text = co_await message_of<hiredis::command_error>(connection::connect(to));
        expect_contains(text, to.name() + ": connect: WRONGPASS");
        text = co_await message_of<hiredis::command_error>(hiredis::subscriber::connect(to));
        expect_contains(text, "AUTH: WRONGPASS");
    }(options()));
}

TEST_F(HiredisCommands, ManyCommandsLeaveNoMemoryBehind) {
    const int each = coil_test::rounds(300, 2000);
    run_checked([](hiredis::options to, int n) -> task<> {
        auto c = co_await connection::connect(to);
        auto work = [&](int i) -> task<> {
            for (int k = 0; k < n; ++k) {
                const std::string value = std::to_string(i * n + k);
                co_await c.call("SET", i, value);
                EXPECT_EQ((co_await c.call("GET", i)).text(), value);
            }
        };
        scope tasks;
        for (int i = 0; i < 50; ++i) {
            tasks.spawn(work(i));
        }
        co_await tasks.join();
        EXPECT_TRUE(c.is_clean());
    }(options(), each));
}

TEST_F(HiredisCommands, TheExampleRuns) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    if (folder == nullptr) {
        GTEST_SKIP() << "COIL_EXAMPLES_DIR is not set; ctest sets it";
    }
    const auto port = std::to_string(server().port());
    const auto ran = coil::run([](std::string program, std::string arg) -> task<process_output> {
        auto p = process::spawn({program, arg});
        co_return co_await p.output();
    }(std::string(folder) + "/redis_counter", port));
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, "visits: 1000\nnews: hello\n");
}

} // namespace

} // namespace redis_test
