#include "nats_server.hpp"

#include <coil/coil.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using namespace nats_test;
using adapter_test::cutting_proxy;

namespace {

/// Publishes to "beat" until the subscription receives a message, and so has subscribed on the
/// current connection.
task<> until_it_works(nats::connection& c, nats::subscription& beats) {
    for (int i = 0;; ++i) {
        co_await c.publish("beat", "");
        try {
            co_await timeout(beats.next(), 50ms);
            co_return;
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out || i > 400) {
                throw;
            }
        }
    }
}

TEST(NatsFailure, ARestartedServerIsFoundAgainAndSubscriptionsWithIt) {
    NEEDS_NATS_SERVER();
    server s;
    coil::run([](server& at) -> task<> {
        nats::connection c =
            co_await nats::connection::connect({.servers = {at.address()}, .reconnect_wait = 10ms});
        nats::subscription beats = co_await c.subscribe("beat");
        co_await until_it_works(c, beats);
        for (int i = 0; i < 3; ++i) {
            at.process().kill();
            at.process().restart(); // on this thread, because the server ends with the thread that
                                    // starts it
            co_await until_it_works(c, beats);
        }
        EXPECT_EQ(c.reconnects(), 3U);
        EXPECT_TRUE(c.is_connected());
    }(s));
}

TEST(NatsFailure, AServerThatDoesNotComeBackEndsEverythingWithItsName) {
    NEEDS_NATS_SERVER();
    server s;
    coil::run([](server& at) -> task<> {
        nats::connection c = co_await nats::connection::connect(
            {.servers = {at.address()}, .reconnect_wait = 1ms, .max_reconnects = 3});
        nats::subscription x = co_await c.subscribe("x");
        co_await c.flush();
        at.process().kill();
        try {
            co_await timeout(x.next(), 20s);
            ADD_FAILURE() << "no error";
        } catch (const nats::error& e) {
            EXPECT_EQ(e.why(), nats::error::kind::connection);
            EXPECT_NE(std::string(e.what()).find(at.address()), std::string::npos) << e.what();
        }
        EXPECT_THROW(co_await c.publish("x", ""), nats::error);
        EXPECT_THROW(co_await c.request("x", "", 1s), nats::error);
        EXPECT_THROW(co_await c.flush(), nats::error);
    }(s));
}

TEST(NatsFailure, AClusterOfThreeLosesOne) {
    NEEDS_NATS_SERVER();
    const std::uint16_t routes[3] = {free_port(), free_port(), free_port()};
    std::unique_ptr<server> servers[3];
    for (int i = 0; i < 3; ++i) {
        servers[i] = std::make_unique<server>(std::vector<std::string>{
            "--cluster", "nats://127.0.0.1:" + std::to_string(routes[i]), "--cluster_name", "three",
            "--routes", "nats://127.0.0.1:" + std::to_string(routes[0])});
    }
    coil::run([](std::unique_ptr<server>(&all)[3]) -> task<> {
        // The connection is given one server and learns of the others.
        nats::connection c = co_await nats::connection::connect(
            {.servers = {all[0]->address()}, .reconnect_wait = 10ms});
        nats::connection other =
            co_await nats::connection::connect({.servers = {all[2]->address()}});
        nats::subscription beats = co_await c.subscribe("beat");
        co_await until_it_works(other, beats); // the routes are up
        co_await sleep_for(300ms); // an INFO message announces routes that were added later
        all[0]->process().kill();
        co_await until_it_works(other, beats);
        EXPECT_EQ(c.reconnects(), 1U);
        EXPECT_TRUE(c.server() == all[1]->address() || c.server() == all[2]->address())
            << c.server();
    }(servers));
}

TEST(NatsFailure, AConnectionCutAtAnyByteIsRestored) {
    NEEDS_NATS_SERVER();
    const server s;
    for (const std::uint64_t bytes : {1, 50, 400, 420, 450, 500, 700, 1000, 1001, 2000}) {
        cutting_proxy proxy(s.port());
        proxy.cut_after(bytes);
        coil::run([](cutting_proxy& network) -> task<> {
            std::optional<nats::connection> c;
            try {
                c.emplace(co_await nats::connection::connect(
                    {.servers = {address(network.port())}, .reconnect_wait = 1ms}));
            } catch (const nats::error& e) {
                EXPECT_EQ(e.why(), nats::error::kind::connection) << e.what();
                co_return;
            }
            nats::subscription beats = co_await c->subscribe("beat");
            for (int i = 0; i < 50; ++i) {
                co_await c->publish("beat", std::string(20, 'x'));
            }
            try {
                co_await c->flush();
            } catch (const nats::error& e) {
                EXPECT_EQ(e.why(), nats::error::kind::connection) << e.what();
            }
            network.cut_after(UINT64_MAX);
            co_await until_it_works(*c, beats);
        }(proxy));
    }
}

TEST(NatsFailure, PublishWaitsForAStalledNetworkAndCanBeCancelled) {
    NEEDS_NATS_SERVER();
    const server s;
    cutting_proxy proxy(s.port());
    coil::run([](cutting_proxy& network) -> task<> {
        nats::connection c = co_await nats::connection::connect(
            {.servers = {address(network.port())}, .max_unsent = 100'000});
        network.stall();
        std::size_t published = 0;
        const auto flood = [](nats::connection& to, std::size_t& count) -> task<> {
            for (;;) {
                co_await to.publish("x", std::string(50'000, 'x'));
                ++count;
            }
        };
        try {
            co_await timeout(flood(c, published), 300ms);
            ADD_FAILURE() << "no limit";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
        EXPECT_LT(published, 1000U); // bounded by options::max_unsent and the kernel's buffers
        network.resume();
        co_await timeout(c.flush(), 20s);
    }(proxy));
}

TEST(NatsFailure, ASilentServerIsNoticed) {
    NEEDS_NATS_SERVER();
    const server s;
    cutting_proxy proxy(s.port());
    coil::run([](cutting_proxy& network) -> task<> {
        nats::connection c =
            co_await nats::connection::connect({.servers = {address(network.port())},
                                                .connect_timeout = 200ms,
                                                .reconnect_wait = 10ms,
                                                .ping_interval = 50ms});
        nats::subscription beats = co_await c.subscribe("beat");
        co_await until_it_works(c, beats);
        network.stall();
        while (c.is_connected()) {
            co_await sleep_for(5ms);
        }
        network.resume();
        co_await until_it_works(c, beats);
        EXPECT_GE(c.reconnects(), 1U);
    }(proxy));
}

TEST(NatsFailure, EveryAwaitCanBeCancelledAtAnyTime) {
    NEEDS_NATS_SERVER();
    const server s;
    const auto use = [](std::uint16_t port) -> task<> {
        nats::connection c = co_await nats::connection::connect({.servers = {address(port)}});
        nats::subscription x = co_await c.subscribe("x");
        co_await c.flush();
        co_await c.publish("x", "1");
        co_await x.next();
        const nats::subscription silent = co_await c.subscribe("silent");
        try {
            co_await c.request("silent", "", 1ms);
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::timed_out) {
                throw;
            }
        }
        co_await c.drain();
    };
    int finished = 0;
    int cancelled = 0;
    for (auto limit = 0us; limit < 20ms && finished < 3; limit += 37us) {
        coil::run([](auto f, std::uint16_t port, std::chrono::microseconds after, int& done,
                     int& stopped) -> task<> {
            scope work;
            work.spawn(f(port));
            if (after % 2us == 0us) {
                // The frames are destroyed in the middle.
                try {
                    co_await timeout(work.join(), after);
                    ++done;
                } catch (const std::system_error& e) {
                    EXPECT_EQ(e.code(), std::errc::timed_out);
                    ++stopped;
                }
                co_return;
            }
            co_await sleep_for(after);
            work.cancel();
            const bool early = work.size() > 0;
            co_await work.join();
            ++(early ? stopped : done);
        }(use, s.port(), limit, finished, cancelled));
    }
    EXPECT_GT(cancelled, 10);
    EXPECT_EQ(finished, 3);
}

/// A server that sends what a test gives it.
task<> say(net::acceptor& ac, std::string text) {
    net::socket peer = co_await ac.accept();
    co_await peer.send_all(text);
    char rest[4096];
    while (co_await peer.recv(rest) > 0) {
    }
}

TEST(NatsFailure, AServerThatWasLostIsTriedLast) {
    coil::run([]() -> task<> {
        const std::string hello = "INFO {}\r\nPONG\r\n";
        net::acceptor first{net::inet_address{"127.0.0.1", 0}};
        net::acceptor second{net::inet_address{"127.0.0.1", 0}};
        scope work;
        work.spawn(say(first, hello + "-ERR 'Stale Connection'\r\n"));
        work.spawn(say(second, hello));
        // The first one of the options does not listen, so the connection is to the second one.
        nats::connection c = co_await nats::connection::connect(
            {.servers = {address(1), address(first.local_address().port()),
                         address(second.local_address().port())},
             .reconnect_wait = 1ms});
        while (c.reconnects() == 0) {
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(c.server(), address(second.local_address().port()));
        work.cancel();
        co_await work.join();
    }());
}

TEST(NatsFailure, AServerThatSpeaksNonsenseGetsNoConnection) {
    const std::string info = "INFO {\"max_payload\":100,\"connect_urls\":[\"[::1]:1\"]}\r\n";
    for (const std::string& text :
         {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("INFO"),
          info + "-ERR 'no'\r\n", std::string(100'000, 'x'), std::string("\r\n"),
          std::string(1, '\0') + "\n"}) {
        coil::run([](std::string what) -> task<> {
            net::acceptor ac{net::inet_address{"127.0.0.1", 0}};
            scope work;
            work.spawn(say(ac, std::move(what)));
            try {
                co_await nats::connection::connect(
                    {.servers = {address(ac.local_address().port())}, .connect_timeout = 200ms});
                ADD_FAILURE() << "connected";
            } catch (const nats::error& e) {
                EXPECT_EQ(e.why(), nats::error::kind::connection) << e.what();
            }
            work.cancel();
            co_await work.join();
        }(text));
    }
}

TEST(NatsFailure, NonsenseInTheMiddleEndsTheConnection) {
    for (const char* nonsense :
         {"MSG\r\n", "MSG x\r\n", "MSG x y 1\r\n", "MSG x 2 99999999999999999999\r\n",
          "MSG x 2 -1\r\n", "HMSG x 2 5 4\r\n", "HMSG x 2 1\r\n", "MSG a b c d e f g\r\n",
          "-ERR 'Stale Connection'\r\n", "what?\r\n", "MSG x 2 100000000\r\n"}) {
        coil::run([](std::string what) -> task<> {
            net::acceptor ac{net::inet_address{"127.0.0.1", 0}};
            scope work;
            work.spawn(say(ac, "INFO {}\r\nPONG\r\n" + what));
            try {
                nats::connection c = co_await nats::connection::connect(
                    {.servers = {address(ac.local_address().port())}, .max_reconnects = 0});
                nats::subscription x = co_await c.subscribe("x");
                co_await timeout(x.next(), 20s);
                ADD_FAILURE() << "still connected after " << what;
            } catch (const nats::error& e) {
                EXPECT_NE(std::string(e.what()).find("127.0.0.1:"), std::string::npos) << e.what();
            }
            work.cancel();
            co_await work.join();
        }(nonsense));
    }
}

} // namespace
