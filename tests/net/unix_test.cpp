// Unix sockets: every kind, stale files, descriptors and credentials; and datagrams with addresses.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

using namespace coil;
using namespace std::chrono_literals;
using net::acceptor;
using net::endpoint;
using net::unix_address;

namespace {

/// A temporary directory whose path is short enough for sun_path.
class UnixSocket : public ::testing::Test {
protected:
    UnixSocket() {
        char name[] = "/tmp/coil-unix-XXXXXX";
        directory_ = ::mkdtemp(name);
    }
    ~UnixSocket() override { std::filesystem::remove_all(directory_); }

    [[nodiscard]] std::string path(const std::string& name = "s") const {
        return (directory_ / name).string();
    }

private:
    std::filesystem::path directory_;
};

using namespace std::string_literals;

task<> echo_once(acceptor& ac, int type) {
    net::socket client = net::socket::create_unix(type);
    EXPECT_EQ(co_await client.connect(ac.local_endpoint()), 0);
    net::socket server = co_await ac.accept();
    EXPECT_TRUE(server);
    EXPECT_EQ(server.local_endpoint(), ac.local_endpoint());
    EXPECT_TRUE(server.peer_endpoint().as_unix().is_unnamed());
    EXPECT_EQ(co_await client.send("ping"), 4);
    char buf[8];
    EXPECT_EQ(co_await server.recv(buf), 4);
    EXPECT_EQ(std::string(buf, 4), "ping");
}

TEST_F(UnixSocket, StreamAndSequencedPackets) {
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
        net::acceptor_options options;
        options.unix_type = type;
        acceptor ac{unix_address{path()}, options};
        EXPECT_EQ(ac.local_endpoint().to_string(), "unix:" + path());
        EXPECT_THROW(static_cast<void>(ac.local_address()), std::system_error);
        coil::run(echo_once(ac, type));
    }
}

TEST_F(UnixSocket, AbstractNames) {
    const auto name = unix_address::abstract("coil-test-" + std::to_string(::getpid()));
    acceptor ac{name};
    EXPECT_EQ(ac.local_endpoint(), endpoint(name));
    coil::run(echo_once(ac, SOCK_STREAM));
    EXPECT_THROW(acceptor{name}, std::system_error); // the first acceptor has the name
}

TEST_F(UnixSocket, AStringConvertsToAnEndpoint) {
    acceptor ac("unix:" + path());
    coil::run(echo_once(ac, SOCK_STREAM));
    const acceptor inet("127.0.0.1:0");
    EXPECT_NE(inet.local_address().port(), 0);
    const acceptor any(0);
    EXPECT_EQ(any.local_address().ip(), "0.0.0.0");
}

TEST_F(UnixSocket, TheFileIsRemovedWithTheAcceptor) {
    {
        acceptor first{unix_address{path()}};
        EXPECT_TRUE(std::filesystem::is_socket(path()));
        const acceptor moved = std::move(first);
        EXPECT_TRUE(std::filesystem::is_socket(path()));
    }
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(UnixSocket, AnotherFileAtItsPathIsNotRemoved) {
    {
        const acceptor first{unix_address{path()}};
        std::filesystem::rename(path(), path("old"));
        std::ofstream(path()) << "mine";
    }
    EXPECT_TRUE(std::filesystem::is_regular_file(path()));
}

TEST_F(UnixSocket, AStaleSocketIsReplaced) {
    {
        // A server that is killed leaves such a socket.
        net::socket dead = net::socket::create_unix();
        EXPECT_EQ(dead.bind(unix_address{path()}), 0);
        EXPECT_EQ(dead.listen(), 0);
    }
    ASSERT_TRUE(std::filesystem::is_socket(path()));
    acceptor ac{unix_address{path()}};
    coil::run(echo_once(ac, SOCK_STREAM));
}

TEST_F(UnixSocket, ASocketInUseIsNotReplaced) {
    acceptor first{unix_address{path()}};
    try {
        const acceptor second{unix_address{path()}};
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::address_in_use);
        EXPECT_NE(std::string(e.what()).find("unix:" + path()), std::string::npos) << e.what();
    }
    auto accept_probe = [](acceptor& ac) -> task<> { EXPECT_TRUE(co_await ac.accept()); };
    coil::run(accept_probe(first)); // the connection with which `second` tested the address
    coil::run(echo_once(first, SOCK_STREAM));
}

TEST_F(UnixSocket, AnotherKindOfFileIsNotReplaced) {
    std::ofstream(path()) << "precious";
    EXPECT_THROW(acceptor{unix_address{path()}}, std::system_error);
    EXPECT_TRUE(std::filesystem::is_regular_file(path()));
    std::filesystem::create_symlink("nowhere", path("link"));
    EXPECT_THROW(acceptor{unix_address{path("link")}}, std::system_error);
    EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
}

TEST_F(UnixSocket, DatagramsCarryTheirSendersAddress) {
    auto main = [](std::string a_path, std::string b_path) -> task<> {
        net::socket a = net::socket::create_unix(SOCK_DGRAM);
        net::socket b = net::socket::create_unix(SOCK_DGRAM);
        EXPECT_EQ(co_await a.bind(unix_address{a_path}), 0);
        EXPECT_EQ(co_await b.bind(unix_address{b_path}), 0);
        EXPECT_EQ(co_await a.send_to("hello", unix_address{b_path}), 5);
        char buf[16];
        auto [n, peer] = co_await b.recv_from(buf);
        EXPECT_EQ(n, 5);
        EXPECT_EQ(peer, endpoint(unix_address{a_path}));
        EXPECT_EQ(co_await b.send_to({buf, n}, peer), 5);
        EXPECT_EQ(co_await a.recv(buf), 5);
        // An unbound sender has no address.
        net::socket c = net::socket::create_unix(SOCK_DGRAM);
        EXPECT_EQ(co_await c.send_to("x", unix_address{b_path}), 1);
        const net::received_from nameless = co_await b.recv_from(buf);
        EXPECT_EQ(nameless.result, 1);
        EXPECT_FALSE(nameless.peer.is_inet());
    };
    coil::run(main(path("a"), path("b")));
}

TEST_F(UnixSocket, DatagramsOverUdp) {
    for (const char* ip : {"127.0.0.1", "::1"}) {
        auto main = [](std::string address) -> task<> {
            const endpoint any(address, 0);
            net::socket a = net::socket::create_udp(any.family());
            net::socket b = net::socket::create_udp(any.family());
            EXPECT_EQ(co_await a.bind(any), 0);
            EXPECT_EQ(co_await b.bind(any), 0);
            EXPECT_EQ(co_await a.send_to("hello", b.local_endpoint()), 5);
            char buf[3];
            const net::received_from got = co_await b.recv_from(buf, MSG_TRUNC);
            EXPECT_EQ(got.result, 5); // the datagram's own length
            EXPECT_EQ(got.peer, a.local_endpoint());
            // With the signatures of sendto(2) and recvfrom(2).
            const endpoint to = b.local_endpoint();
            EXPECT_EQ(co_await a.sendto("abc", 0, to.data(), to.size()), 3);
            ::sockaddr_storage from{};
            ::socklen_t length = sizeof from;
            EXPECT_EQ(co_await b.recvfrom(buf, 0, reinterpret_cast<::sockaddr*>(&from), &length),
                      3);
            EXPECT_EQ(endpoint(reinterpret_cast<::sockaddr*>(&from), length), a.local_endpoint());
        };
        coil::run(main(ip));
    }
}

TEST_F(UnixSocket, G3_CancelledRecvFromGivesNoAddress) {
    auto main = []() -> task<> {
        net::socket s = net::socket::create_udp();
        EXPECT_EQ(s.bind({"127.0.0.1", 0}), 0);
        auto receive = [](net::socket& from) -> task<net::received_from> {
            char buf[8];
            co_return co_await from.recv_from(buf);
        };
        auto handle = coil::spawn(receive(s));
        co_await yield();
        handle.cancel();
        const net::received_from got = co_await handle;
        EXPECT_EQ(got.result, -ECANCELED);
        EXPECT_EQ(got.peer, endpoint());
    };
    coil::run(main());
}

TEST_F(UnixSocket, PairsOfEveryKind) {
    auto main = []() -> task<> {
        for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
            auto [a, b] = net::socket::pair(type);
            EXPECT_EQ(co_await a.send("ab"), 2);
            char buf[4];
            EXPECT_EQ(co_await b.recv(buf), 2);
            EXPECT_NE(::fcntl(a.native_handle(), F_GETFD) & FD_CLOEXEC, 0);
        }
    };
    coil::run(main());
    EXPECT_THROW(static_cast<void>(net::socket::pair(99)), std::system_error);
}

TEST_F(UnixSocket, ReturnsThePeersCredentials) {
    auto [a, b] = net::socket::pair();
    const net::credentials me{::getpid(), ::getuid(), ::getgid()};
    EXPECT_EQ(a.peer_credentials(), me);
    EXPECT_THROW(static_cast<void>(net::socket().peer_credentials()), std::system_error);
}

// ---- descriptors

task<> pass(net::socket& from, net::socket& to, std::vector<int> fds) {
    EXPECT_EQ(co_await from.send_descriptors(fds, "data"), 4);
    char buf[8];
    net::received_descriptors got = co_await to.recv_descriptors(buf);
    EXPECT_EQ(got.result, 4);
    EXPECT_FALSE(got.truncated);
    EXPECT_EQ(got.descriptors.size(), fds.size());
    for (std::size_t i = 0; i < got.descriptors.size(); ++i) {
        const int fd = got.descriptors[i].native_handle();
        struct ::stat sent{};
        struct ::stat received{};
        EXPECT_EQ(::fstat(fds[i], &sent), 0);
        EXPECT_EQ(::fstat(fd, &received), 0);
        EXPECT_EQ(sent.st_ino, received.st_ino); // the same file
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    }
}

TEST_F(UnixSocket, G4_DescriptorsAreSentAndOwned) {
    const std::set<int> before = coil_test::open_descriptors();
    {
        const coil_test::pipe_pair pipe;
        auto main = [](std::vector<int> fds) -> task<> {
            for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
                auto [a, b] = net::socket::pair(type);
                co_await pass(a, b, fds);
                co_await pass(a, b, {});
                co_await pass(a, b, std::vector<int>(net::max_descriptors, fds[0]));
                const std::vector<int> too_many(net::max_descriptors + 1, fds[0]);
                EXPECT_EQ(co_await a.send_descriptors(too_many, "x"), -EINVAL);
                EXPECT_EQ(co_await a.send_descriptors(fds, const_buffer()), -EINVAL);
                const std::vector<int> closed{-1};
                EXPECT_EQ(co_await a.send_descriptors(closed, "x"), -EBADF);
            }
        };
        coil::run(main({pipe.in, pipe.out}));
    }
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(UnixSocket, G4_UnreceivedDescriptorsAreClosed) {
    const std::set<int> before = coil_test::open_descriptors();
    {
        const coil_test::pipe_pair pipe;
        auto main = [](std::vector<int> fds) -> task<> {
            auto [a, b] = net::socket::pair();
            char buf[8];
            // A recv_descriptors() that loses a when_any may have received the descriptors.
            EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
            auto both = co_await when_any(timeout(0s), b.recv_descriptors(buf));
            static_cast<void>(both);
            // These are still in the socket when it is destroyed.
            EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
        };
        coil::run(main({pipe.in, pipe.out}));
        // The receiver is destroyed while its result waits in the ready queue.
        {
            io_context ctx;
            auto [a, b] = net::socket::pair();
            auto receive = [](net::socket& s) -> task<> {
                char buf[8];
                co_await s.recv_descriptors(buf);
                ADD_FAILURE() << "the context was stopped before it could resume this task";
            };
            auto send = [](net::socket& s, std::vector<int> fds, io_context& c) -> task<> {
                EXPECT_EQ(co_await s.send_descriptors(fds, "x"), 1);
                c.stop();
            };
            ctx.co_spawn(send(a, {pipe.in, pipe.out}, ctx));
            ctx.run();
            ctx.co_spawn(receive(b));
        }
    }
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(UnixSocket, G3_CancelledReceiveOfDescriptorsTakesNone) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        auto receive = [](net::socket& s) -> task<net::received_descriptors> {
            char buf[8];
            co_return co_await s.recv_descriptors(buf);
        };
        auto handle = coil::spawn(receive(b));
        co_await yield();
        handle.cancel();
        const net::received_descriptors got = co_await handle;
        EXPECT_EQ(got.result, -ECANCELED);
        EXPECT_TRUE(got.descriptors.empty());
        // Descriptors that are sent later are received by the next call.
        const std::vector<int> fds{a.native_handle()};
        EXPECT_EQ(co_await a.send_descriptors(fds, "x"), 1);
        char buf[8];
        const net::received_descriptors next = co_await b.recv_descriptors(buf);
        EXPECT_EQ(next.descriptors.size(), 1U);
    };
    coil::run(main());
}

TEST_F(UnixSocket, G6_AtTheDescriptorLimitTheReceivedListIsTruncated) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        std::string said;
        auto main = [](std::string& complaint) -> task<> {
            auto [a, b] = net::socket::pair();
            const std::vector<int> fds(3, a.native_handle());
            if (co_await a.send_descriptors(fds, "x") != 1) {
                complaint = "cannot send";
            }
            // One more descriptor may be opened.
            const int next = ::dup(0);
            ::close(next);
            const ::rlimit few{static_cast<::rlim_t>(next) + 1, 4096};
            ::setrlimit(RLIMIT_NOFILE, &few);
            char buf[8];
            const net::received_descriptors got = co_await b.recv_descriptors(buf);
            if (got.result != 1 || !got.truncated || got.descriptors.size() != 1) {
                complaint += "result " + std::to_string(got.result) + ", truncated " +
                             std::to_string(got.truncated) + ", descriptors " +
                             std::to_string(got.descriptors.size());
            }
        };
        coil::run(main(said));
        return said;
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
