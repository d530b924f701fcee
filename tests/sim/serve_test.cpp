// net::serve in a simulated world: its limits in virtual time, and the TCP_INFO and socket cookies
// on which they rely.

#include "support.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace coil;
using namespace sim_test;

namespace {

struct load {
    int now = 0;
    int most = 0;
};

net::serve_options limits(std::shared_ptr<net::serve_meter> meter = nullptr) {
    net::serve_options o;
    o.max_connections = 2;
    o.idle = 60s;
    o.grace = 10s;
    o.hard_deadline = 5s;
    o.meter = std::move(meter);
    return o;
}

task<> echo(load& seen, net::socket peer) {
    seen.most = std::max(seen.most, ++seen.now);
    char buf[64];
    int n = 0;
    while ((n = co_await peer.recv(buf)) > 0) {
        co_await peer.send_all({buf, n});
    }
    --seen.now;
}

auto echo_to(load& seen) {
    return [&seen](net::socket peer) { return echo(seen, std::move(peer)); };
}

/// Sends a byte every `pause`, `times` times. Returns how many came back.
task<int> ask(net::inet_address where, context_clock::duration pause, int times) {
    net::socket s = net::socket::create_tcp();
    while (co_await s.connect(where) < 0) {
        co_await sleep_for(10ms);
    }
    int answers = 0;
    for (; answers < times; ++answers) {
        char c = 'x';
        if (co_await s.send({&c, 1}) != 1 || co_await s.recv({&c, 1}) != 1) {
            break;
        }
        co_await sleep_for(pause);
    }
    co_return answers;
}

TEST(ServeInAWorld, NoMoreThanMaxConnections) {
    load seen;
    auto meter = std::make_shared<net::serve_meter>();
    sim::world w(1);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(net::serve(80, echo_to(seen), limits(meter)));
    std::vector<join_handle<int>> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(client.spawn(ask(server.address(80), 1s, 5)));
    }
    w.run_for(5min);
    for (auto& each : clients) {
        ASSERT_TRUE(each.done());
        EXPECT_EQ(each.get(), 5);
    }
    EXPECT_EQ(seen.most, 2);
    EXPECT_EQ(seen.now, 0);
    EXPECT_GT(meter->metrics().held_back, 0U);
}

TEST(ServeInAWorld, AnIdleConnectionEndsAndAnActiveOneDoesNot) {
    load seen;
    auto meter = std::make_shared<net::serve_meter>();
    sim::world w(1);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(net::serve(80, echo_to(seen), limits(meter)));
    auto active = client.spawn(ask(server.address(80), 50s, 10));
    auto idle = client.spawn(ask(server.address(80), 70s, 10));
    w.run_for(1h);
    ASSERT_TRUE(active.done() && idle.done());
    EXPECT_EQ(active.get(), 10);
    EXPECT_EQ(idle.get(), 1);
    EXPECT_EQ(meter->metrics().idle_ended, 1U);
}

/// Works for a time in which it cannot be cancelled.
task<> works(net::socket, bool& ended, context_clock::duration time) {
    co_await shield(sleep_for(time));
    ended = true;
}

struct stop_result {
    bool ended = false;
    context_clock::duration took{};
};

/// Stops a server with one connection whose handler works for that time.
stop_result stop_with(context_clock::duration time) {
    stop_result result;
    sim::world w(1);
    sim::host& server = w.host("server");
    auto serving = server.spawn(net::serve(
        80, [&](net::socket peer) { return works(std::move(peer), result.ended, time); },
        limits()));
    auto asking = w.host("client").spawn(ask(server.address(80), 1s, 1));
    w.run_for(1s);
    EXPECT_FALSE(asking.done()); // it waits for an answer
    const auto begin = w.now();
    serving.cancel();
    w.run_until([&] { return serving.done(); });
    result.took = w.now() - begin;
    return result;
}

TEST(ServeInAWorld, AStopWaitsForTheGraceAndNotForLonger) {
    const stop_result within = stop_with(8s);
    EXPECT_TRUE(within.ended);
    EXPECT_LT(within.took, 10s);
    const stop_result beyond = stop_with(1h);
    EXPECT_FALSE(beyond.ended);
    EXPECT_GE(beyond.took, 15s);
    EXPECT_LT(beyond.took, 16s);
}

std::uint64_t play(std::uint64_t seed) {
    load seen;
    sim::world_options options;
    options.faults = sim::fault_plan::timing();
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    server.co_spawn(net::serve(80, echo_to(seen), limits()));
    for (int i = 0; i < 4; ++i) {
        w.host("client").co_spawn([](net::inet_address where) -> task<> {
            static_cast<void>(co_await ask(where, 70s, 2));
        }(server.address(80)));
    }
    w.run_for(10min);
    EXPECT_LE(seen.most, 2);
    return w.trace_hash();
}

TEST(ServeInAWorld, OptionsForSeveralProcessorsHaveNoEffect) {
    load seen;
    const auto meter = std::make_shared<net::serve_meter>();
    sim::world w(1);
    net::serve_options o = limits(meter);
    o.balancing = net::balancing::least_connections;
    o.incoming_cpu = true;
    o.acceptor.incoming_cpu = 1;
    sim::host& server = w.host("server");
    server.co_spawn(net::serve(80, echo_to(seen), o));
    auto client = w.host("client").spawn(ask(server.address(80), 1s, 3));
    w.run_for(1min);
    ASSERT_TRUE(client.done());
    EXPECT_EQ(client.get(), 3);
    EXPECT_EQ(meter->metrics().moved, 0U);
}

TEST(ServeInAWorld, ASeedReplaysItsRun) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        EXPECT_EQ(play(seed), play(seed)) << "SEED=" << seed;
    }
}

task<::tcp_info> tcp_info_of(const net::socket& s) {
    ::tcp_info info{};
    ::socklen_t length = sizeof info;
    EXPECT_EQ(co_await io::getsockopt(s.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    EXPECT_EQ(length, sizeof info);
    co_return info;
}

TEST(TcpInfo, ReportsTheTimeSinceTheLastTraffic) {
    sim::world w(1);
    sim::host& server = w.host("server");
    auto done = server.spawn([]() -> task<> {
        net::acceptor ac(80);
        net::socket peer = co_await ac.accept();
        char c = 0;
        EXPECT_EQ(co_await peer.recv({&c, 1}), 1);
        co_await sleep_for(7s);
        const ::tcp_info quiet = co_await tcp_info_of(peer);
        EXPECT_EQ(quiet.tcpi_state, TCP_ESTABLISHED);
        EXPECT_EQ(quiet.tcpi_last_data_recv / 1000, 7U);
        EXPECT_EQ(co_await peer.send("x"), 1);
        co_await sleep_for(3s);
        const ::tcp_info sent = co_await tcp_info_of(peer);
        EXPECT_EQ(sent.tcpi_last_data_sent / 1000, 3U);
        EXPECT_EQ(sent.tcpi_last_data_recv / 1000, 10U);
    });
    w.run();
    w.host("client").co_spawn([](net::inet_address where) -> task<> {
        net::socket s = net::socket::create_tcp();
        EXPECT_EQ(co_await s.connect(where), 0);
        EXPECT_EQ(co_await s.send("x"), 1);
        co_await sleep_for(1min);
    }(server.address(80)));
    w.run();
    EXPECT_TRUE(done.done());
}

task<std::uint64_t> cookie_of(const net::socket& s) {
    std::uint64_t value = 0;
    ::socklen_t length = sizeof value;
    EXPECT_EQ(co_await io::getsockopt(s.native_handle(), SOL_SOCKET, SO_COOKIE, &value, &length),
              0);
    EXPECT_EQ(length, sizeof value);
    co_return value;
}

TEST(TcpInfo, CookiesDifferAndUnixSocketsHaveNoTcp) {
    sim::world w(1);
    run_in(w, w.host("a"), []() -> task<> {
        const net::socket a = net::socket::create_tcp();
        const net::socket b = net::socket::create_tcp();
        const auto first = co_await cookie_of(a);
        EXPECT_EQ(co_await cookie_of(a), first);
        EXPECT_NE(co_await cookie_of(b), first);
        const net::socket local = net::socket::create_unix();
        ::tcp_info info{};
        ::socklen_t length = sizeof info;
        EXPECT_EQ(
            co_await io::getsockopt(local.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &length),
            -EOPNOTSUPP);
    }());
}

} // namespace
