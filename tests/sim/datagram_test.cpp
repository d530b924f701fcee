#include "sim/support.hpp"

#include <algorithm>
#include <set>
#include <vector>

using namespace sim_test;

namespace {

task<> count_datagrams(std::uint16_t port, std::vector<int>& got) {
    net::socket s = net::socket::create_udp();
    const int bound = co_await s.bind(net::inet_address(port));
    EXPECT_EQ(bound, 0);
    for (;;) {
        int number = 0;
        const int n = co_await s.recv({&number, sizeof number});
        if (n == sizeof number) {
            got.push_back(number);
        }
    }
}

task<> send_datagrams(net::inet_address to, int count) {
    net::socket s = net::socket::create_udp();
    co_await s.connect(to);
    for (int i = 0; i < count; ++i) {
        co_await s.send({&i, sizeof i});
        co_await coil::sleep_for(100us);
    }
}

std::vector<int> datagrams(sim::link_options link, bool cut = false) {
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    w.link(a, b, link);
    if (cut) {
        w.partition(a, b);
    }
    std::vector<int> got;
    b.co_spawn(count_datagrams(9, got));
    w.run(); // until it listens
    a.co_spawn(send_datagrams(b.address(9), 1000));
    w.run();
    return got;
}

TEST(SimDatagram, AllArriveOnAReliableLink) {
    const std::vector<int> got = datagrams({});
    EXPECT_EQ(got.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

TEST(SimDatagram, ABadLinkLosesDuplicatesAndReorders) {
    const std::vector<int> got =
        datagrams({.latency = 1ms, .jitter = 2ms, .loss = 100, .duplicate = 100});
    const std::set<int> different(got.begin(), got.end());
    EXPECT_GT(different.size(), 800U);
    EXPECT_LT(different.size(), 980U);
    EXPECT_GT(got.size(), different.size());
    EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
}

TEST(SimDatagram, NothingGetsThroughAPartition) { EXPECT_TRUE(datagrams({}, true).empty()); }

task<int> send_to_nobody(net::inet_address to) {
    net::socket s = net::socket::create_udp();
    co_await s.connect(to);
    co_await s.send("anybody?");
    char buf[10];
    const int n = co_await s.recv(buf);
    co_return n;
}

TEST(SimDatagram, AConnectedSocketLearnsThatItsPeerIsMissing) {
    sim::world w{1};
    EXPECT_EQ(run_in(w, w.host("a"), send_to_nobody(w.host("b").address(9))), -ECONNREFUSED);
}

} // namespace
