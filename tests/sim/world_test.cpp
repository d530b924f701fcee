// The world itself: its clock, its order, and that both follow from the seed.

#include "support/run.hpp"

#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace {

using coil::task;
using namespace std::chrono_literals;
namespace sim = coil::sim;
namespace net = coil::net;

task<> ping_session(net::socket peer) {
    char buf[64];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

task<> ping_server(std::uint16_t port) {
    net::acceptor acceptor{net::inet_address(port)};
    while (net::socket peer = co_await acceptor.accept()) {
        coil::co_spawn(ping_session(std::move(peer)));
    }
}

task<int> ping_client(net::inet_address server, int count) {
    net::socket s = net::socket::create_tcp();
    int answers = 0;
    if (const int error = co_await s.connect(server); error < 0) {
        co_return error;
    }
    for (int i = 0; i < count; ++i) {
        const int sent = co_await s.send_all("PING\r\n");
        if (sent < 0) {
            co_return sent;
        }
        char buf[5];
        const int received = co_await s.recv_all(buf);
        if (received != 5) {
            co_return received;
        }
        ++answers;
    }
    co_return answers;
}

struct ping_run {
    int answers = 0;
    std::uint64_t hash = 0;
    std::chrono::nanoseconds took{};
    std::string trace;
};

ping_run run_pings(std::uint64_t seed, int count, sim::world_options options = {}) {
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(ping_server(6379));
    const auto begin = w.now();
    auto result = client.spawn(ping_client(server.address(6379), count));
    w.run();
    ping_run run;
    run.answers = result.get();
    run.hash = w.trace_hash();
    run.took = w.now() - begin;
    run.trace = w.trace();
    return run;
}

TEST(SimWorld, APingGoesThereAndBack) {
    const ping_run run = run_pings(1, 3);
    EXPECT_EQ(run.answers, 3) << run.trace;
    EXPECT_GE(run.took, 300us);
    EXPECT_LE(run.took, 5ms);
}

TEST(SimWorld, TheSameSeedGivesTheSameRunAndOthersGiveOthers) {
    const ping_run first = run_pings(7, 20);
    const ping_run second = run_pings(7, 20);
    const ping_run other = run_pings(8, 20);
    EXPECT_EQ(first.hash, second.hash);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_NE(first.hash, other.hash);
}

} // namespace
