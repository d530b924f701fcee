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

task<int> send_to_an_unused_port(net::inet_address to) {
    net::socket s = net::socket::create_udp();
    co_await s.connect(to);
    co_await s.send("anybody?");
    char buf[10];
    const int n = co_await s.recv(buf);
    co_return n;
}

TEST(SimDatagram, AConnectedSocketLearnsThatItsPeerIsMissing) {
    sim::world w{1};
    EXPECT_EQ(run_in(w, w.host("a"), send_to_an_unused_port(w.host("b").address(9))),
              -ECONNREFUSED);
}

task<> echo_batches(std::uint16_t port) {
    net::socket s = net::socket::create_udp();
    EXPECT_EQ(s.bind(net::inet_address(port)), 0);
    net::datagram_batch batch(4, 256);
    for (;;) {
        const int n = co_await net::receive_batch(s, batch);
        if (n < 0) {
            co_return;
        }
        EXPECT_EQ(co_await net::send_batch(s, batch), n);
    }
}

/// A piece of several segments arrives as datagrams, because a world has no segmentation offload.
task<> ask_for_segments(net::inet_address to, std::vector<std::size_t>& sizes) {
    net::socket s = net::socket::create_udp();
    coil::buffer_pool pool({.buffers = 8, .buffer_size = 1024, .incremental = false});
    net::datagram_stream incoming = net::datagrams(s, pool);
    const std::string data(250, 'x');
    EXPECT_EQ(co_await net::send_datagram(s, {data.data(), data.size()},
                                          {.peer = to, .segment_size = 100}),
              250);
    while (sizes.size() < 3) {
        const net::datagram d = co_await incoming.next();
        EXPECT_EQ(d.peer(), net::endpoint(to));
        sizes.push_back(d.bytes().size());
    }
}

TEST(SimDatagram, BatchesAndSegments) {
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    w.link(a, b, {});
    std::vector<std::size_t> sizes;
    b.co_spawn(echo_batches(9));
    w.run();
    a.co_spawn(ask_for_segments(b.address(9), sizes));
    w.run();
    std::sort(sizes.begin(), sizes.end()); // a link may reorder datagrams
    EXPECT_EQ(sizes, (std::vector<std::size_t>{50, 100, 100}));
}

} // namespace
