// net::socket: ownership, calls, options, and misbehaving peers.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <netinet/tcp.h>
#include <sys/resource.h>

using namespace coil;
using namespace std::chrono_literals;
using net::acceptor;
using net::inet_address;

namespace {

class NetSocket : public ::testing::Test {};

/// Two connected TCP sockets.
struct connection {
    net::socket client;
    net::socket server;
};

task<connection> connected() {
    acceptor ac{inet_address{"127.0.0.1", 0}};
    net::socket client = net::socket::create_tcp();
    EXPECT_EQ(co_await client.connect(ac.local_address()), 0);
    net::socket server = co_await ac.accept();
    co_return connection{std::move(client), std::move(server)};
}

// ---- ownership

TEST_F(NetSocket, OwnsItsDescriptor) {
    int fd = -1;
    {
        const net::socket s = net::socket::create_tcp();
        EXPECT_TRUE(s);
        fd = s.native_handle();
        EXPECT_TRUE(coil_test::is_open(fd));
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_FALSE(coil_test::is_open(fd));
}

TEST_F(NetSocket, DefaultOwnsNothing) {
    const net::socket s;
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error(), std::error_code());
    EXPECT_EQ(net::socket(-EBADF).error(), std::errc::bad_file_descriptor);
}

TEST_F(NetSocket, HoldsTheErrorWithWhichItWasConstructed) {
    const net::socket s(-EMFILE);
    EXPECT_FALSE(s);
    EXPECT_EQ(s.error(), std::errc::too_many_files_open);
}

TEST_F(NetSocket, MovesAndReleases) {
    static_assert(!std::is_copy_constructible_v<net::socket>);
    net::socket a = net::socket::create_tcp();
    const int fd = a.native_handle();
    net::socket b = std::move(a);
    EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): the moved-from state is tested
    EXPECT_EQ(b.native_handle(), fd);
    net::socket c = net::socket::create_tcp();
    const int old = c.native_handle();
    c = std::move(b);
    EXPECT_FALSE(coil_test::is_open(old)); // assigning closes what was owned
    EXPECT_EQ(c.native_handle(), fd);
    auto& self = c;
    c = std::move(self);
    EXPECT_EQ(c.native_handle(), fd);
    const coil_test::descriptor mine{c.release()};
    EXPECT_FALSE(c);
    EXPECT_TRUE(coil_test::is_open(mine));
}

TEST_F(NetSocket, CreateThrowsWhenThereAreNoDescriptors) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        const ::rlimit none{3, 3};
        ::setrlimit(RLIMIT_NOFILE, &none);
        try {
            const auto s = net::socket::create_tcp();
        } catch (const std::system_error& e) {
            return e.code() == std::errc::too_many_files_open ? "" : e.what();
        }
        return "did not throw";
    });
    EXPECT_EQ(complaint, "");
}

TEST_F(NetSocket, IsCreatedOfEveryKind) {
    auto type_of = [](const net::socket& s, int option) {
        int value = 0;
        ::socklen_t length = sizeof value;
        ::getsockopt(s.native_handle(), SOL_SOCKET, option, &value, &length);
        return value;
    };
    EXPECT_EQ(type_of(net::socket::create_tcp(AF_INET6), SO_DOMAIN), AF_INET6);
    EXPECT_EQ(type_of(net::socket::create_udp(), SO_TYPE), SOCK_DGRAM);
    EXPECT_EQ(type_of(net::socket::create_unix(), SO_DOMAIN), AF_UNIX);
}

// ---- close

TEST_F(NetSocket, CloseGivesUpOwnership) {
    auto main = []() -> task<> {
        net::socket s = net::socket::create_tcp();
        const coil_test::open_file file(s.native_handle());
        EXPECT_EQ(co_await s.close(), 0);
        EXPECT_FALSE(s);
        EXPECT_FALSE(file.is_open());
        EXPECT_EQ(co_await s.close(), -EBADF); // twice
    };
    coil::run(main());
}

TEST_F(NetSocket, CloseInAChainHappensUnlessAPredecessorFails) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        // Closes.
        EXPECT_EQ(co_await (c.client.send("bye") && c.client.close()), 0);
        EXPECT_FALSE(c.client);
        char buf[8];
        EXPECT_EQ(co_await c.server.recv(buf), 3);
        EXPECT_EQ(co_await c.server.recv(buf), 0);
        // Does not close, because its predecessor fails.
        EXPECT_EQ(co_await (io::read(-1, buf) && c.server.close()), -ECANCELED);
        EXPECT_TRUE(c.server);
        EXPECT_TRUE(coil_test::is_open(c.server.native_handle()));
        // Closes although its successor fails.
        const coil_test::open_file file(c.server.native_handle());
        EXPECT_EQ(co_await (c.server.close() && io::read(-1, buf)), -EBADF);
        EXPECT_FALSE(c.server);
        EXPECT_FALSE(file.is_open());
    };
    coil::run(main());
}

TEST_F(NetSocket, CloseInTheMiddleOfASuccessfulChain) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        const coil_test::open_file file(c.client.native_handle());
        EXPECT_EQ(co_await (c.client.shutdown_write() && c.client.close() && io::nop()), 0);
        EXPECT_FALSE(c.client); // closed, so the socket must not own the number any more
        EXPECT_FALSE(file.is_open());
    };
    coil::run(main());
}

TEST_F(NetSocket, CloseInAChainThatIsTooLongDoesNotHappen) {
    io_context ctx(8);
    auto main = []() -> task<> {
        net::socket s = net::socket::create_tcp();
        auto four = [] { return io::nop() && io::nop() && io::nop() && io::nop(); };
        EXPECT_EQ(co_await (four() && four() && s.close()), -E2BIG);
        EXPECT_TRUE(s); // nothing was done, so it is still open
        EXPECT_TRUE(coil_test::is_open(s.native_handle()));
    };
    coil_test::run_on(ctx, main());
}

TEST_F(NetSocket, CloseAfterALimitThatExpired) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        char buf[8];
        EXPECT_EQ(co_await (timeout(c.server.recv(buf), 3ms) && c.server.close()), -ETIMEDOUT);
        EXPECT_TRUE(c.server);
        EXPECT_EQ(co_await c.client.send("x"), 1);
        EXPECT_EQ(co_await (timeout(c.server.recv(buf), 3s) && c.server.close()), 0);
        EXPECT_FALSE(c.server);
    };
    coil::run(main());
}

TEST_F(NetSocket, CloseThatIsCancelledBeforeItStarts) {
    auto closes = [](net::socket& s) -> task<int> { co_return co_await s.close(); };
    auto main = [](auto f) -> task<> {
        net::socket s = net::socket::create_tcp();
        auto h = coil::spawn(f(s));
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
        EXPECT_TRUE(s);
        EXPECT_TRUE(coil_test::is_open(s.native_handle()));
    };
    coil::run(main(closes));
}

TEST_F(NetSocket, CloseWhoseFrameIsDestroyed) {
    // Whenever the frame is destroyed, the descriptor is closed if and only if the socket is empty.
    auto closes = [](net::socket& s) -> coil_test::manual { co_await s.close(); };
    auto main = [](auto f, int turns) -> task<> {
        net::socket s = net::socket::create_tcp();
        const coil_test::open_file file(s.native_handle());
        {
            const coil_test::manual victim = f(s);
            victim.start();
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
        }
        EXPECT_EQ(static_cast<bool>(s), file.is_open()) << turns;
    };
    for (int turns = 0; turns < 4; ++turns) {
        coil::run(main(closes, turns));
    }
}

// ---- data

TEST_F(NetSocket, SendsAndReceives) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        char buf[16];
        EXPECT_EQ(co_await c.client.send("hello"), 5);
        const auto n = co_await c.server.recv(buf);
        EXPECT_EQ(n, 5);
        EXPECT_EQ(co_await c.server.send({buf, n}), 5);
        EXPECT_EQ(co_await c.client.recv(buf, MSG_PEEK), 5);
        EXPECT_EQ(co_await c.client.recv(buf), 5);
    };
    coil::run(main());
}

TEST_F(NetSocket, SendAllAndRecvAllMoveMegabytesBothWays) {
    auto sends = [](net::socket& s, const std::string& data) -> task<> {
        EXPECT_EQ(co_await s.send_all(data), static_cast<int>(data.size()));
        EXPECT_EQ(co_await s.shutdown_write(), 0);
    };
    auto receives = [](net::socket& s, std::string& data) -> task<> {
        const int n = co_await s.recv_all(data);
        EXPECT_EQ(n, static_cast<int>(data.size()));
        char c;
        EXPECT_EQ((co_await s.recv_all({&c, 1})), 0); // the end
    };
    auto main = [](auto out, auto in) -> task<> {
        connection c = co_await connected();
        std::string data(3 << 20, '\0');
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i] = static_cast<char>(i * 7 >> 3);
        }
        std::string there(data.size(), '\0');
        std::string back(data.size(), '\0');
        auto a = coil::spawn(out(c.client, data));
        auto b = coil::spawn(out(c.server, data));
        auto d = coil::spawn(in(c.server, there));
        co_await in(c.client, back);
        co_await a;
        co_await b;
        co_await d;
        EXPECT_TRUE(there == data);
        EXPECT_TRUE(back == data);
    };
    coil::run(main(sends, receives));
}

TEST_F(NetSocket, RecvAllReturnsHowMuchItReceivedBeforeTheEnd) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        EXPECT_EQ(co_await c.client.send_all("four"), 4);
        EXPECT_EQ(co_await c.client.shutdown_write(), 0);
        char buf[10];
        EXPECT_EQ(co_await c.server.recv_all(buf), 4);
    };
    coil::run(main());
}

TEST_F(NetSocket, HalfClosedStillReceives) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        EXPECT_EQ(co_await (c.client.send("request") && c.client.shutdown_write()), 0);
        char buf[16];
        EXPECT_EQ(co_await c.server.recv(buf), 7);
        EXPECT_EQ(co_await c.server.recv(buf), 0);      // the peer has finished
        EXPECT_EQ(co_await c.server.send("answer"), 6); // the peer still receives
        EXPECT_EQ(co_await c.server.close(), 0);
        EXPECT_EQ(co_await c.client.recv(buf), 6);
        EXPECT_EQ(co_await c.client.recv(buf), 0);
        EXPECT_EQ(co_await c.client.send("x"), -EPIPE);
    };
    coil::run(main());
}

TEST_F(NetSocket, ShutdownReadEndsOnesOwnRecv) {
    auto receives = [](net::socket& s) -> task<int> {
        char c;
        co_return co_await s.recv({&c, 1});
    };
    auto main = [](auto f) -> task<> {
        connection c = co_await connected();
        auto h = coil::spawn(f(c.server));
        co_await sleep_for(1ms);
        EXPECT_EQ(co_await c.server.shutdown_read(), 0);
        EXPECT_EQ(co_await h, 0);
    };
    coil::run(main(receives));
}

// ---- misbehaving peers

TEST_F(NetSocket, APeerThatResets) {
    auto main = []() -> task<> {
        connection c = co_await connected();
        EXPECT_EQ(c.client.set_linger(0s), 0);
        EXPECT_EQ(co_await c.client.close(), 0);
        char buf[8];
        EXPECT_EQ(co_await c.server.recv(buf), -ECONNRESET);
        EXPECT_EQ(co_await c.server.send("x"), -EPIPE);
    };
    coil::run(main());
}

TEST_F(NetSocket, APeerThatResetsWhileARecvWaits) {
    auto receives = [](net::socket& s) -> task<int> {
        char buf[8];
        co_return co_await s.recv(buf);
    };
    auto main = [](auto f) -> task<> {
        connection c = co_await connected();
        auto h = coil::spawn(f(c.server));
        co_await sleep_for(1ms);
        EXPECT_EQ(c.client.set_linger(0s), 0);
        c.client = net::socket();
        EXPECT_EQ(co_await h, -ECONNRESET);
    };
    coil::run(main(receives));
}

TEST_F(NetSocket, APeerThatVanishesInMidSend_NoSignal) {
    // The default action of SIGPIPE would kill the test. The process's first context ignores it.
    ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
    auto sends = [](net::socket& s, const std::string& data) -> task<int> {
        co_return co_await s.send_all(data);
    };
    auto main = [](auto f) -> task<> {
        connection c = co_await connected();
        const std::string data(20 << 20, 'x');
        auto h = coil::spawn(f(c.server, data));
        char buf[1024];
        EXPECT_GT(co_await c.client.recv(buf), 0);
        EXPECT_FALSE(h.done()); // more than the buffers hold
        c.client = net::socket();
        const int n = co_await h;
        EXPECT_TRUE(n == -ECONNRESET || n == -EPIPE) << n;
        EXPECT_EQ(co_await c.server.send("x"), -EPIPE);
        EXPECT_EQ(co_await (c.server.send("x") && io::nop()), -ECANCELED);
    };
    coil::run(main(sends));
}

TEST_F(NetSocket, ConnectWithoutAListenerIsRefused) {
    auto main = []() -> task<> {
        inet_address unused_address;
        {
            const acceptor ac{inet_address{"127.0.0.1", 0}};
            unused_address = ac.local_address();
        }
        net::socket s = net::socket::create_tcp();
        EXPECT_EQ(co_await s.connect(unused_address), -ECONNREFUSED);
        EXPECT_EQ(co_await timeout(s.connect(unused_address), 5s), -ECONNREFUSED);
    };
    coil::run(main());
}

TEST_F(NetSocket, ConnectKeepsItsOwnCopyOfTheAddress) {
    auto main = []() -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        net::socket s = net::socket::create_tcp();
        auto op = [&] {
            inet_address gone = ac.local_address();
            auto connect = s.connect(gone);
            gone = inet_address{"192.0.2.1", 1};
            return connect;
        }();
        EXPECT_EQ(co_await std::move(op), 0);
        const net::socket server = co_await ac.accept();
        EXPECT_TRUE(server);
    };
    coil::run(main());
}

TEST_F(NetSocket, ConnectInAChain) {
    auto main = []() -> task<> {
        acceptor ac{inet_address{"127.0.0.1", 0}};
        net::socket s = net::socket::create_tcp();
        EXPECT_EQ(co_await (s.connect(ac.local_address()) && s.send("hi") && s.close()), 0);
        net::socket server = co_await ac.accept();
        char buf[8];
        EXPECT_EQ(co_await server.recv(buf), 2);
        EXPECT_EQ(co_await server.recv(buf), 0);
    };
    coil::run(main());
}

TEST_F(NetSocket, AnUnansweredConnectIsLimited) {
    auto main = []() -> task<> {
        // A listener with a full backlog does not answer.
        acceptor ac{inet_address{"127.0.0.1", 0}, [] {
                        net::acceptor_options o;
                        o.backlog = 0;
                        return o;
                    }()};
        std::vector<net::socket> fill;
        int result = 0;
        while (result == 0 && fill.size() < 20) {
            fill.push_back(net::socket::create_tcp());
            result = co_await timeout(fill.back().connect(ac.local_address()), 50ms);
        }
        EXPECT_EQ(result, -ETIMEDOUT);
    };
    coil::run(main());
}

// ---- options and names

TEST_F(NetSocket, OptionsAreSet) {
    net::socket s = net::socket::create_tcp();
    auto value = [&](int level, int name) {
        int v = 0;
        ::socklen_t length = sizeof v;
        ::getsockopt(s.native_handle(), level, name, &v, &length);
        return v;
    };
    EXPECT_EQ(s.set_no_delay(true), 0);
    EXPECT_EQ(value(IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(s.set_no_delay(false), 0);
    EXPECT_EQ(value(IPPROTO_TCP, TCP_NODELAY), 0);
    EXPECT_EQ(s.set_keep_alive(true), 0);
    EXPECT_EQ(value(SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(s.set_reuse_address(true), 0);
    EXPECT_EQ(value(SOL_SOCKET, SO_REUSEADDR), 1);
    EXPECT_EQ(s.set_reuse_port(true), 0);
    EXPECT_EQ(value(SOL_SOCKET, SO_REUSEPORT), 1);
    EXPECT_EQ(s.set_send_buffer_size(64 << 10), 0);
    EXPECT_GE(value(SOL_SOCKET, SO_SNDBUF), 64 << 10);
    EXPECT_EQ(s.set_receive_buffer_size(64 << 10), 0);
    EXPECT_GE(value(SOL_SOCKET, SO_RCVBUF), 64 << 10);
    net::socket six = net::socket::create_tcp(AF_INET6);
    EXPECT_EQ(six.set_v6_only(true), 0);

    ::linger l{};
    ::socklen_t length = sizeof l;
    EXPECT_EQ(s.set_linger(7s), 0);
    ::getsockopt(s.native_handle(), SOL_SOCKET, SO_LINGER, &l, &length);
    EXPECT_TRUE(l.l_onoff == 1 && l.l_linger == 7);
    EXPECT_EQ(s.set_linger(-1s), 0);
    ::getsockopt(s.native_handle(), SOL_SOCKET, SO_LINGER, &l, &length);
    EXPECT_EQ(l.l_onoff, 0);
}

TEST_F(NetSocket, OptionsOfAnEmptySocketAreErrors) {
    net::socket nothing;
    EXPECT_EQ(nothing.set_no_delay(true), -EBADF);
    EXPECT_EQ(nothing.set_linger(1s), -EBADF);
    EXPECT_EQ(nothing.bind(inet_address()), -EBADF);
    EXPECT_EQ(nothing.listen(), -EBADF);
    EXPECT_THROW((void)nothing.local_address(), std::system_error);
    EXPECT_THROW((void)nothing.peer_address(), std::system_error);
    net::socket unconnected = net::socket::create_tcp();
    EXPECT_THROW((void)unconnected.peer_address(), std::system_error);
    net::socket four = net::socket::create_tcp();
    EXPECT_NE(four.set_v6_only(true), 0);
}

TEST_F(NetSocket, AnEmptySocketAnswersWithBadDescriptor) {
    auto main = []() -> task<> {
        net::socket nothing;
        char c = 'x';
        EXPECT_EQ((co_await nothing.recv({&c, 1})), -EBADF);
        EXPECT_EQ((co_await nothing.send({&c, 1})), -EBADF);
        EXPECT_EQ(co_await nothing.connect(inet_address{"127.0.0.1", 1}), -EBADF);
        EXPECT_EQ(co_await nothing.shutdown_write(), -EBADF);
        EXPECT_EQ((co_await nothing.send_all({&c, 1})), -EBADF);
        EXPECT_EQ((co_await nothing.recv_all({&c, 1})), -EBADF);
    };
    coil::run(main());
}

TEST_F(NetSocket, BindAndListenByHand) {
    net::socket s = net::socket::create_tcp();
    EXPECT_EQ(s.bind(inet_address{"127.0.0.1", 0}), 0);
    EXPECT_EQ(s.listen(), 0);
    EXPECT_NE(s.local_address().port(), 0);
}

} // namespace
