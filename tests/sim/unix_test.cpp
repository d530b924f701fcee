// Unix sockets and datagrams with addresses in a world.

#include "sim/support.hpp"

#include <string>

#include <poll.h>
#include <sys/socket.h>

using namespace sim_test;

namespace {

task<> echo_over(net::endpoint where) {
    net::acceptor acceptor{where};
    EXPECT_EQ(acceptor.local_endpoint(), where);
    net::socket client = net::socket::create_unix();
    EXPECT_EQ(co_await client.connect(where), 0);
    net::socket server = co_await acceptor.accept();
    EXPECT_EQ(co_await client.send("ping"), 4);
    char buf[8];
    EXPECT_EQ(co_await server.recv(buf), 4);
}

TEST(SimUnix, AcceptorOnAPathAndAnAbstractName) {
    sim::world w{1};
    sim::host& h = w.host("a");
    h.co_spawn(echo_over(net::unix_address("/tmp/s")));
    w.run();
    EXPECT_TRUE(h.list("/tmp").empty()); // the acceptor has removed its file
    h.co_spawn(echo_over(net::unix_address::abstract("s")));
    w.run();
}

task<> leave_stale(net::endpoint where) {
    net::socket dead = net::socket::create_unix();
    EXPECT_EQ(co_await dead.bind(where), 0);
    EXPECT_EQ(co_await dead.listen(), 0);
}

TEST(SimUnix, AStaleSocketIsReplaced) {
    sim::world w{1};
    sim::host& h = w.host("a");
    const net::unix_address where("/tmp/s");
    h.co_spawn(leave_stale(where));
    w.run();
    EXPECT_EQ(h.list("/tmp").size(), 1U);
    h.co_spawn(echo_over(where));
    w.run();
}

task<> use_pair(int type) {
    auto [a, b] = net::socket::pair(type);
    EXPECT_EQ(co_await a.send("ab"), 2);
    char buf[4];
    EXPECT_EQ(co_await b.recv(buf), 2);
}

TEST(SimUnix, Pairs) {
    sim::world w{1};
    sim::host& h = w.host("a");
    for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
        h.co_spawn(use_pair(type));
        w.run();
    }
    EXPECT_TRUE(h.open_descriptors().empty());
}

task<> wait_for_room(const net::socket& s, bool& has_room) {
    const int ready = co_await io::poll(s.native_handle(), POLLOUT);
    EXPECT_NE(ready & POLLOUT, 0);
    has_room = true;
}

task<> poll_a_full_peer(bool closes) {
    const auto name = net::unix_address::abstract("receiver");
    net::socket receiver = net::socket::create_unix(SOCK_DGRAM);
    EXPECT_EQ(co_await receiver.bind(name), 0);
    net::socket sender = net::socket::create_unix(SOCK_DGRAM);
    EXPECT_EQ(co_await sender.connect(name), 0);
    for (int i = 0; i < 11; ++i) {
        EXPECT_EQ(co_await sender.send("x"), 1);
    }
    bool has_room = false;
    auto waiting = coil::spawn(wait_for_room(sender, has_room));
    co_await coil::sleep_for(1ms);
    EXPECT_FALSE(has_room);
    char buf[4];
    if (closes) {
        EXPECT_EQ(co_await receiver.close(), 0);
    } else {
        EXPECT_EQ(co_await receiver.recv(buf), 1);
    }
    co_await coil::sleep_for(1ms);
    EXPECT_TRUE(has_room);
    waiting.cancel();
}

TEST(SimUnix, APollWaitsUntilTheReceiverHasRoomOrIsClosed) {
    for (const bool closes : {false, true}) {
        sim::world w{1};
        sim::host& h = w.host("a");
        h.co_spawn(poll_a_full_peer(closes));
        w.run();
    }
}

task<> poll_a_full_pair() {
    auto [a, b] = net::socket::pair(SOCK_DGRAM);
    constexpr int size = 64 * 1024; // world_options::socket_buffer
    std::string buf(size, 'x');
    EXPECT_EQ(co_await a.send(buf), size);
    bool has_room = false;
    auto waiting = coil::spawn(wait_for_room(a, has_room));
    co_await coil::sleep_for(1ms);
    EXPECT_FALSE(has_room);
    EXPECT_EQ(co_await b.recv(buf), size);
    co_await coil::sleep_for(1ms);
    EXPECT_TRUE(has_room);
    waiting.cancel();
}

TEST(SimUnix, APollWaitsUntilTheOtherEndOfAPairHasRoom) {
    sim::world w{1};
    sim::host& h = w.host("a");
    h.co_spawn(poll_a_full_pair());
    w.run();
}

task<> answer_one(std::uint16_t port) {
    net::socket s = net::socket::create_udp();
    EXPECT_EQ(co_await s.bind(port), 0);
    char buf[8];
    auto [n, peer] = co_await s.recv_from(buf);
    EXPECT_EQ(n, 4);
    EXPECT_EQ(co_await s.send_to({buf, n}, peer), 4);
}

task<> ask(net::endpoint server) {
    net::socket s = net::socket::create_udp();
    EXPECT_EQ(co_await s.send_to("ping", server), 4);
    char buf[8];
    auto [n, peer] = co_await s.recv_from(buf);
    EXPECT_EQ(n, 4);
    EXPECT_EQ(peer, server);
}

TEST(SimUnix, DatagramsBetweenHostsCarryTheirSendersAddress) {
    sim::world w{1};
    sim::host& a = w.host("a");
    sim::host& b = w.host("b");
    a.co_spawn(answer_one(53));
    w.run();
    b.co_spawn(ask(a.address(53)));
    w.run();
}

} // namespace
