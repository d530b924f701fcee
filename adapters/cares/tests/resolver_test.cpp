// coil::cares against a DNS server that runs in the test.

#include "dns_server.hpp"
#include "support/server_process.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <ares.h>

namespace cares_test {

namespace {

class CaresResolver : public ::testing::Test {
protected:
    [[nodiscard]] cares::resolver_options options() const {
        return {.servers = {server.address()}, .timeout = 2s, .tries = 2, .hosts_file = false};
    }

    dns_server server;
};

std::set<std::string> texts(const std::vector<net::inet_address>& addresses) {
    std::set<std::string> all;
    for (const auto& a : addresses) {
        all.insert(a.to_string());
    }
    return all;
}

TEST_F(CaresResolver, ReturnsTheAddressesOfBothFamilies) {
    run_checked([](cares::resolver_options o) -> task<> {
        cares::resolver names(o);
        EXPECT_EQ(texts(co_await names.resolve("both.test", 80)),
                  (std::set<std::string>{"192.0.2.1:80", "[2001:db8::1]:80"}));
        EXPECT_EQ(texts(co_await names.resolve("four.test", 443)),
                  (std::set<std::string>{"192.0.2.4:443"}));
        EXPECT_EQ(texts(co_await names.resolve("four.test", "https")),
                  (std::set<std::string>{"192.0.2.4:443"}));
        EXPECT_EQ(texts(co_await names.resolve("four.test", 0)),
                  (std::set<std::string>{"192.0.2.4:0"}));
        EXPECT_EQ(texts(co_await names.resolve("four.test", "65535")),
                  (std::set<std::string>{"192.0.2.4:65535"}));
    }(options()));
}

TEST_F(CaresResolver, NumericAddressesAndTheHostsFileNeedNoServer) {
    run_checked([](cares::resolver_options o, dns_server& s) -> task<> {
        o.hosts_file = true;
        cares::resolver names(o);
        EXPECT_EQ(texts(co_await names.resolve("127.0.0.9", 1)),
                  (std::set<std::string>{"127.0.0.9:1"}));
        EXPECT_EQ(texts(co_await names.resolve("::1", 1)), (std::set<std::string>{"[::1]:1"}));
        EXPECT_TRUE(texts(co_await names.resolve("localhost", 1)).contains("127.0.0.1:1"));
        EXPECT_EQ(s.datagrams(), 0);
    }(options(), server));
}

TEST_F(CaresResolver, FetchesATruncatedAnswerByTcp) {
    run_checked([](cares::resolver_options o, dns_server& s) -> task<> {
        cares::resolver names(o);
        EXPECT_EQ(texts(co_await names.resolve("many.test", 80)).size(), 60U);
        EXPECT_GE(s.connections(), 1);
    }(options(), server));
}

TEST_F(CaresResolver, ErrorsNameTheHostAndTheCause) {
    run_checked([](cares::resolver_options o) -> task<> {
        cares::resolver names(o);
        const auto code = [&](std::string host) -> task<int> {
            const auto error = co_await code_of(names.resolve(host, 80));
            EXPECT_EQ(&error.category(), &cares::category());
            co_return error.value();
        };
        EXPECT_EQ(co_await code("unknown.test"), ARES_ENOTFOUND);
        EXPECT_EQ(co_await code("empty.test"), ARES_ENODATA);
        EXPECT_NE(co_await code("refused.test"), ARES_SUCCESS);
        EXPECT_NE(co_await code("failed.test"), ARES_SUCCESS);
        EXPECT_EQ(co_await code(""), ARES_EBADNAME);
        EXPECT_EQ(co_await code(std::string("a\0b", 3)), ARES_EBADNAME);
        EXPECT_EQ(co_await code(std::string(70, 'x') + ".test"), ARES_EBADNAME);
        const auto text = co_await message_of<std::system_error>(names.resolve("unknown.test", 80));
        expect_contains(text, "cannot resolve unknown.test: Domain name not found");
        for (const char* const service : {" 80", "+80", "65536", "", "-1", "80x"}) {
            EXPECT_EQ((co_await code_of(names.resolve("four.test", service))).value(),
                      ARES_ESERVICE)
                << service;
        }
    }(options()));
}

TEST_F(CaresResolver, TriesAgainAndThenTimesOut) {
    run_checked([](cares::resolver_options o, dns_server& s) -> task<> {
        o.timeout = 60ms;
        cares::resolver names(o);
        EXPECT_EQ(texts(co_await names.resolve("retry.test", 80)).size(), 2U);
        EXPECT_EQ(s.datagrams(), 4);
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(co_await code_of(names.resolve("silent.test", 80)), std::errc::timed_out);
        const auto took = std::chrono::steady_clock::now() - begin;
        EXPECT_GE(took, 60ms);
        EXPECT_LT(took, 5s);
        EXPECT_EQ(co_await code_of(names.resolve("garbage.test", 80)), std::errc::timed_out);
    }(options(), server));
}

TEST_F(CaresResolver, WaitsWithoutUsingTheProcessor) {
    run_checked([](cares::resolver_options o) -> task<> {
        o.timeout = 400ms;
        o.tries = 1;
        cares::resolver names(o);
        const auto before = std::clock();
        EXPECT_EQ(co_await code_of(names.resolve("silent.test", 80)), std::errc::timed_out);
        EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5);
    }(options()));
}

TEST_F(CaresResolver, ReportsThatNoServerListens) {
    run_checked([]() -> task<> {
        cares::resolver names({.servers = {{"127.0.0.1", free_port()}},
                               .timeout = 100ms,
                               .tries = 2,
                               .hosts_file = false});
        EXPECT_EQ(co_await code_of(names.resolve("both.test", 80)), std::errc::connection_refused);
    }());
}

TEST_F(CaresResolver, UsesTheNextServer) {
    run_checked([](cares::resolver_options o) -> task<> {
        o.timeout = 200ms; // c-ares may miss the refusal and then waits this long
        o.servers.insert(o.servers.begin(), net::inet_address("127.0.0.1", free_port()));
        cares::resolver names(o);
        EXPECT_EQ(texts(co_await names.resolve("both.test", 80)).size(), 2U);
    }(options()));
}

TEST_F(CaresResolver, ALimitEndsTheAwaitAtOnce) {
    run_checked([](cares::resolver_options o) -> task<> {
        cares::resolver names(o);
        const auto begin = std::chrono::steady_clock::now();
        const auto code = co_await code_of(limited(names.resolve("silent.test", 80), 20ms));
        EXPECT_EQ(code, std::make_error_code(std::errc::timed_out));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
        EXPECT_EQ(texts(co_await names.resolve("both.test", 80)).size(), 2U);
    }(options()));
}

TEST_F(CaresResolver, ManyLookUpsAtTheSameTime) {
    const int each = coil_test::rounds(40, 2000);
    run_checked([](cares::resolver_options o, int n) -> task<> {
        cares::resolver names(o);
        const auto work = [&](int i) -> task<> {
            for (int k = 0; k < n; ++k) {
                const bool is_known = (i + k) % 3 != 0;
                const std::string host =
                    (is_known ? "both" : "unknown") + ('.' + std::to_string(k)) + ".test";
                if (is_known) {
                    EXPECT_EQ((co_await names.resolve(host, 80)).size(), 2U);
                } else {
                    EXPECT_EQ((co_await code_of(names.resolve(host, 80))).value(), ARES_ENOTFOUND);
                }
            }
        };
        scope tasks;
        for (int i = 0; i < 50; ++i) {
            tasks.spawn(work(i));
        }
        co_await tasks.join();
    }(options(), each));
}

TEST_F(CaresResolver, ACancellationAtAnyMomentLeavesTheResolverUsable) {
    run_checked([](cares::resolver_options o) -> task<> {
        cares::resolver names(o);
        const auto after = [](int turns) -> task<> {
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
        };
        for (int turns = 0; turns < 200; ++turns) {
            co_await when_all(when_any(names.resolve("both.test", 80), after(turns)),
                              when_any(names.resolve("many.test", 80), after(2 * turns)),
                              when_any(names.resolve("late.test", 80), after(turns)));
        }
        EXPECT_EQ(texts(co_await names.resolve("both.test", 80)).size(), 2U);
    }(options()));
}

TEST_F(CaresResolver, FramesMayBeDestroyedDuringLookUps) {
    const std::set<int> before = coil_test::open_descriptors();
    for (int turns = 0; turns < 40; ++turns) {
        io_context context;
        context.co_spawn([](cares::resolver_options o) -> task<> {
            cares::resolver names(o);
            co_await when_all(names.resolve("silent.test", 80), names.resolve("many.test", 80),
                              names.resolve("late.test", 80));
        }(options()));
        context.co_spawn([](int n) -> task<> {
            co_await sleep_for(std::chrono::microseconds(50 * n));
            this_context().stop();
        }(turns));
        context.run();
    } // destroying the context destroys the frames
    expect_descriptors(before);
}

TEST_F(CaresResolver, ADestroyedResolverEndsItsLookUps) {
    run_checked([](cares::resolver_options o) -> task<> {
        auto names = std::make_unique<cares::resolver>(o);
        const auto destroy = [&]() -> task<> {
            co_await sleep_for(5ms);
            names.reset();
        };
        const auto [code, nothing] =
            co_await when_all(code_of(names->resolve("silent.test", 80)), destroy());
        static_cast<void>(nothing);
        EXPECT_EQ(code.value(), ARES_EDESTRUCTION);
    }(options()));
}

TEST_F(CaresResolver, ConnectsByName) {
    run_checked([](cares::resolver_options o) -> task<> {
        cares::resolver names(o);
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        const std::uint16_t port = acceptor.local_address().port();
        const auto [client, accepted] =
            co_await when_all(names.connect("local.test", port), acceptor.accept());
        EXPECT_EQ(client.peer_address().port(), port);
        EXPECT_TRUE(accepted);
        const auto text =
            co_await message_of<std::system_error>(names.connect("local.test", free_port()));
        expect_contains(text, "cannot connect to local.test port ");
    }(options()));
}

TEST_F(CaresResolver, TheExampleRuns) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    if (folder == nullptr) {
        GTEST_SKIP() << "COIL_EXAMPLES_DIR is not set; ctest sets it";
    }
    const auto ran = coil::run([](std::vector<std::string> argv) -> task<process_output> {
        auto p = process::spawn(argv);
        co_return co_await p.output();
    }({std::string(folder) + "/dns_query", "-s", server.address().to_string(), "four.test",
                                                                 "unknown.test"}));
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, "four.test 192.0.2.4\n"
                       "coil: cares: cannot resolve unknown.test: Domain name not found\n");
}

} // namespace

} // namespace cares_test
