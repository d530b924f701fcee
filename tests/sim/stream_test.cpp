// Streams have the same results as on Linux, with and without failures.

#include "sim/support.hpp"

#include <sys/socket.h>

using namespace sim_test;

namespace {

task<> accept_and_keep(std::uint16_t port, net::socket& kept) {
    net::acceptor acceptor{net::inet_address(port)};
    kept = co_await acceptor.accept();
}

task<int> connect_only(net::inet_address to) {
    net::socket s = net::socket::create_tcp();
    const int result = co_await s.connect(to);
    co_return result;
}

TEST(SimStream, ConnectWithoutAListener) {
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    EXPECT_EQ(run_in(w, a, connect_only(b.address(1))), -ECONNREFUSED);
}

TEST(SimStream, ConnectToAnUnusedAddress) {
    sim::world w{1};
    EXPECT_EQ(run_in(w, w.host("a"), connect_only(net::inet_address("10.0.0.99", 1))),
              -EHOSTUNREACH);
}

TEST(SimStream, ConnectingToAHostWithoutPowerTakesTwoMinutesToFail) {
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    b.crash();
    const auto begin = w.now();
    EXPECT_EQ(run_in(w, a, connect_only(b.address(1))), -ETIMEDOUT);
    EXPECT_GE(w.now() - begin, 127s);
    EXPECT_LE(w.now() - begin, 200s);
}

task<> send_lots(std::uint16_t port, std::size_t size) {
    net::acceptor acceptor{net::inet_address(port)};
    net::socket peer = co_await acceptor.accept();
    std::string data(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        data[i] = static_cast<char>(i * 7 + i / 256);
    }
    const int sent = co_await peer.send_all(data);
    EXPECT_EQ(sent, static_cast<int>(size));
}

task<std::size_t> receive_until_end(net::inet_address from) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(from);
    EXPECT_EQ(connected, 0);
    std::size_t at = 0;
    char buf[5000];
    for (int n = 1; n > 0;) {
        n = co_await s.recv(buf);
        EXPECT_GE(n, 0);
        for (int i = 0; i < n; ++i, ++at) {
            if (buf[i] != static_cast<char>(at * 7 + at / 256)) {
                ADD_FAILURE() << "byte " << at;
                co_return at;
            }
        }
    }
    co_return at;
}

TEST(SimStream, AStreamKeepsItsOrderAndLosesNothingWhateverTheFaults) {
    const bool ok = sim::for_each_seed(50, [](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        options.faults.short_transfer = 300;
        options.link.loss = 20;
        sim::world w(seed, options);
        sim::host& server = w.host("server");
        server.co_spawn(send_lots(7, 300'000));
        w.run(); // until it listens
        const std::size_t got = run_in(w, w.host("client"), receive_until_end(server.address(7)));
        EXPECT_EQ(got, 300'000U) << "SEED=" << seed;
        return !testing::Test::HasFailure();
    });
    EXPECT_TRUE(ok);
}

task<std::pair<int, int>> use_after_peer_closed(net::inet_address to, bool unread) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(to);
    EXPECT_EQ(connected, 0);
    if (unread) {
        co_await s.send("unread data");
    }
    co_await coil::sleep_for(10ms);
    char buf[10];
    const int received = co_await s.recv(buf);
    co_await s.send("x");
    co_await coil::sleep_for(10ms);
    const int sent = co_await s.send("y");
    co_return std::pair(received, sent);
}

task<> accept_and_close(std::uint16_t port, std::chrono::milliseconds after) {
    net::acceptor acceptor{net::inet_address(port)};
    const net::socket peer = co_await acceptor.accept();
    co_await coil::sleep_for(after);
}

TEST(SimStream, AClosedPeerIsAnEndAndThenABrokenPipe) {
    sim::world w{3};
    sim::host& server = w.host("server");
    server.co_spawn(accept_and_close(7, 0ms));
    const auto [received, sent] =
        run_in(w, w.host("client"), use_after_peer_closed(server.address(7), false));
    EXPECT_EQ(received, 0);
    EXPECT_EQ(sent, -EPIPE);
}

TEST(SimStream, APeerThatClosesWithoutReadingResets) {
    sim::world w{3};
    sim::host& server = w.host("server");
    server.co_spawn(accept_and_close(7, 5ms));
    const auto [received, sent] =
        run_in(w, w.host("client"), use_after_peer_closed(server.address(7), true));
    EXPECT_EQ(received, -ECONNRESET);
    EXPECT_EQ(sent, -EPIPE);
}

task<int> wait_for_answer(net::inet_address to) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(to);
    if (connected < 0) {
        co_return connected;
    }
    co_await s.send("hello");
    char buf[10];
    int n = co_await s.recv(buf);
    while (n > 0) {
        co_await coil::sleep_for(1s);
        const int sent = co_await s.send("again");
        if (sent < 0) {
            co_return sent;
        }
        n = co_await s.recv(buf);
    }
    co_return n;
}

task<> answer_all(std::uint16_t port) {
    net::acceptor acceptor{net::inet_address(port)};
    net::socket peer = co_await acceptor.accept();
    char buf[10];
    for (int n = 1; n > 0;) {
        n = co_await peer.recv(buf);
        if (n > 0) {
            co_await peer.send("answer");
        }
    }
}

TEST(SimStream, APartitionDropsEverythingUntilATimeout) {
    sim::world_options options;
    options.stream_timeout = 1min;
    sim::world w(5, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(answer_all(7));
    auto result = client.spawn(wait_for_answer(server.address(7)));
    w.run_for(5500ms);
    w.partition(server, client);
    w.run_for(30s);
    EXPECT_FALSE(result.done());
    w.run_for(60s);
    ASSERT_TRUE(result.done());
    EXPECT_EQ(result.get(), -ETIMEDOUT);
}

TEST(SimStream, StalledDataArrivesWhenThePartitionIsHealed) {
    sim::world w{5};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(answer_all(7));
    auto result = client.spawn(wait_for_answer(server.address(7)));
    w.run_for(5500ms);
    w.partition(server, client);
    w.run_for(30s);
    w.heal(server, client);
    w.run_for(30s);
    EXPECT_FALSE(result.done()); // the connection still works
}

TEST(SimStream, ARestartedHostDoesNotKnowItsOldConnections) {
    sim::world w{5};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(answer_all(7));
    auto result = client.spawn(wait_for_answer(server.address(7)));
    w.run_for(5500ms);
    server.crash();
    server.restart();
    w.run_for(30s);
    ASSERT_TRUE(result.done());
    EXPECT_EQ(result.get(), -ECONNRESET);
}

/// Sends one request, and then only receives.
task<int> listen_for_ever(net::inet_address to, bool keep_alive) {
    net::socket s = net::socket::create_tcp();
    s.set_keep_alive(keep_alive);
    const int connected = co_await s.connect(to);
    EXPECT_EQ(connected, 0);
    char buf[10];
    co_await s.send("hello");
    int n = co_await s.recv(buf);
    while (n > 0) {
        n = co_await s.recv(buf);
    }
    co_return n;
}

enum class silence : std::uint8_t { crash, restart, partition, short_partition };

/// The listener's result after four hours, or 1 for none.
int listen_in(silence what, bool keep_alive) {
    sim::world w{5};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(answer_all(7));
    auto result = client.spawn(listen_for_ever(server.address(7), keep_alive));
    w.run_for(1s);
    if (what == silence::crash || what == silence::restart) {
        server.crash();
    } else {
        w.partition(server, client);
    }
    w.run_for(1h);
    EXPECT_FALSE(result.done());
    if (what == silence::restart) {
        server.restart();
    } else if (what == silence::short_partition) {
        w.heal(server, client);
    }
    w.run_for(3h);
    return result.done() ? result.get() : 1;
}

TEST(SimStream, AReceiverNoticesTheEndOnlyByKeepAlive) {
    EXPECT_EQ(listen_in(silence::crash, true), -ETIMEDOUT);
    EXPECT_EQ(listen_in(silence::restart, true), -ECONNRESET);
    EXPECT_EQ(listen_in(silence::partition, true), -ETIMEDOUT);
    EXPECT_EQ(listen_in(silence::short_partition, true), 1);
    EXPECT_EQ(listen_in(silence::crash, false), 1);
    EXPECT_EQ(listen_in(silence::restart, false), 1);
}

task<int> two_partitions_later(net::inet_address to) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(to);
    EXPECT_EQ(connected, 0);
    co_await coil::sleep_for(1s);
    co_await s.send("lost"); // the peer is gone
    char buf[10];
    const int n = co_await s.recv(buf);
    EXPECT_EQ(n, -ETIMEDOUT);
    co_await coil::sleep_for(5min); // its descriptor is still open
    co_return n;
}

task<> count_bytes(std::uint16_t port, int& bytes, int& end) {
    net::acceptor acceptor{net::inet_address(port)};
    net::socket peer = co_await acceptor.accept();
    char buf[10];
    for (end = 1; end > 0;) {
        end = co_await peer.recv(buf);
        bytes += end > 0 ? end : 0;
        if (end > 0) {
            co_await peer.send("answer");
        }
    }
}

task<int> write_after(net::socket& s) {
    const int first = co_await s.send("x");
    EXPECT_EQ(first, 1);
    co_await coil::sleep_for(1s);
    const int second = co_await s.send("y");
    co_return second;
}

TEST(SimStream, ATimedOutConnectionSendsNothingAgainAndResetsItsPeer) {
    int bytes = 0;
    int end = 0;
    sim::world_options options;
    options.stream_timeout = 1min;
    sim::world w(5, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(count_bytes(7, bytes, end));
    net::socket kept;
    server.co_spawn(accept_and_keep(8, kept));
    auto result = client.spawn(two_partitions_later(server.address(7)));
    auto other = client.spawn(two_partitions_later(server.address(8)));
    w.run_for(500ms);
    w.partition(server, client);
    w.run_for(2min);
    w.heal(server, client);
    w.run_for(1min);
    EXPECT_EQ(bytes, 0);
    EXPECT_EQ(run_in(w, server, write_after(kept)), -ECONNRESET);
    EXPECT_EQ(result.get(), -ETIMEDOUT);
    EXPECT_EQ(other.get(), -ETIMEDOUT);
}

task<int> fill(net::inet_address to) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(to);
    EXPECT_EQ(connected, 0);
    const std::string much(1'000'000, 'x');
    const int sent = co_await coil::timeout(s.send_all(much), 1s);
    co_return sent;
}

TEST(SimStream, AReceiverThatDoesNotReadHoldsTheSenderBack) {
    sim::world w{5};
    sim::host& server = w.host("server");
    net::socket kept;
    server.co_spawn(accept_and_keep(7, kept));
    auto result = w.host("client").spawn(fill(server.address(7)));
    w.run_for(10s);
    ASSERT_TRUE(result.done());
    EXPECT_EQ(result.get(), -ETIMEDOUT);
}

task<std::string> names_of_both(net::inet_address to) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(to);
    EXPECT_EQ(connected, 0);
    co_return s.local_address().ip() + " " + s.peer_address().to_string();
}

TEST(SimStream, BothEndsHaveNames) {
    sim::world w{5};
    sim::host& server = w.host("server");
    server.co_spawn(accept_and_close(7, 1s));
    EXPECT_EQ(run_in(w, w.host("client"), names_of_both(server.address(7))), "10.0.0.2 10.0.0.1:7");
}

task<int> bind_twice() {
    net::acceptor first{net::inet_address(7)};
    net::socket second = net::socket::create_tcp();
    second.set_reuse_address(true);
    const int bound = co_await second.bind(net::inet_address(7));
    co_return bound;
}

TEST(SimStream, APortThatIsListenedOnIsTaken) {
    sim::world w{5};
    EXPECT_EQ(run_in(w, w.host("a"), bind_twice()), -EADDRINUSE);
}

} // namespace
