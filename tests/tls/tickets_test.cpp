// When a server sends its session tickets: with its next output, or before it waits for the peer.

#include "tls/support.hpp"

#include <string>

using namespace tls_test;

namespace {

struct traffic {
    int writes = 0;
    bool holds = false; // writes are kept back
    std::string held;
};

/// A socket that counts its writes and can keep them back, so that they arrive with a later one.
class observed_socket {
public:
    observed_socket(net::socket s, traffic& t) : socket_(std::move(s)), traffic_(&t) {}
    auto read_some(coil::mutable_buffer to) { return socket_.read_some(to); }
    task<io_result> write_some(coil::const_buffer from) {
        ++traffic_->writes;
        traffic_->held.append(static_cast<const char*>(from.data()), from.size());
        if (!traffic_->holds) {
            const std::string all = std::exchange(traffic_->held, {});
            (co_await coil::write_all(socket_, coil::const_buffer(all.data(), all.size()))).value();
        }
        co_return io_result(static_cast<int>(from.size()));
    }
    auto shutdown_write() { return socket_.shutdown_write(); }

private:
    net::socket socket_;
    traffic* traffic_;
};

using observed_stream = tls::basic_stream<observed_socket>;

struct observed_ends {
    observed_ends() : observed_ends(net::socket::pair()) {}
    explicit observed_ends(std::pair<net::socket, net::socket> sockets)
        : client(observed_socket(std::move(sockets.first), of_client), client_context()),
          server(observed_socket(std::move(sockets.second), of_server), server_context()) {}

    traffic of_client;
    traffic of_server;
    observed_stream client;
    observed_stream server;
};

task<> expect_accept(observed_stream& s) { EXPECT_EQ(co_await s.accept(), 0) << s.last_error(); }

task<> expect_handshake(observed_ends& both) {
    co_await when_all(expect_accept(both.server), [](observed_stream& s) -> task<> {
        EXPECT_EQ(co_await s.handshake("example.test"), 0) << s.last_error();
    }(both.client));
}

TEST(TlsTickets, AreSentWithTheFirstData) {
    auto main = []() -> task<> {
        observed_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(both.of_server.writes, 1); // from ServerHello to Finished
        EXPECT_EQ(co_await both.server.write_some({"answer", 6}), 6);
        EXPECT_EQ(both.of_server.writes, 2);
        EXPECT_EQ(co_await read_exactly(both.client, 6), "answer");
        EXPECT_TRUE(both.client.session());
        EXPECT_EQ(co_await both.server.write_some({"more", 4}), 4);
        EXPECT_EQ(both.of_server.writes, 3);
        EXPECT_EQ(co_await read_exactly(both.client, 4), "more");
    };
    coil::run(main());
}

TEST(TlsTickets, AreSentWithCloseNotify) {
    auto main = []() -> task<> {
        observed_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(co_await both.server.shutdown_write(), 0);
        EXPECT_EQ(both.of_server.writes, 2);
        EXPECT_EQ(co_await read_to_end(both.client), "");
        EXPECT_TRUE(both.client.session());
    };
    coil::run(main());
}

/// A request that arrives with the client's Finished is read without sending anything.
TEST(TlsTickets, AreSentWithTheAnswerToARequestThatIsAlreadyReceived) {
    auto main = []() -> task<> {
        observed_ends both;
        auto serve = [](observed_ends& b) -> task<> {
            co_await expect_accept(b.server);
            EXPECT_EQ(co_await read_exactly(b.server, 7), "request");
            EXPECT_EQ(b.of_server.writes, 1);
            EXPECT_EQ(co_await b.server.write_some({"answer", 6}), 6);
            EXPECT_EQ(b.of_server.writes, 2);
        };
        auto ask = [](observed_ends& b) -> task<> {
            EXPECT_EQ(co_await b.client.handshake("example.test"), 0) << b.client.last_error();
            EXPECT_FALSE(b.of_client.held.empty());
            b.of_client.holds = false;
            EXPECT_EQ(co_await b.client.write_some({"request", 7}), 7);
            EXPECT_EQ(co_await read_exactly(b.client, 6), "answer");
            EXPECT_TRUE(b.client.session());
        };
        // The server's first flight is sent after the ClientHello; from then on the client's
        // output is kept back.
        auto hold = [](observed_ends& b) -> task<> {
            while (b.of_client.writes == 0) {
                co_await coil::yield();
            }
            b.of_client.holds = true;
        };
        co_await when_all(hold(both), serve(both), ask(both));
    };
    coil::run(main());
}

/// Stays in a read until the peer has the tickets.
template <class Both>
task<> expect_tickets_while_the_server_reads(Both& both) {
    auto serve = [](Both& b) -> task<> {
        EXPECT_EQ(co_await read_exactly(b.server, 1), "q");
        EXPECT_EQ(co_await b.server.write_some({"a", 1}), 1);
    };
    auto ask = [](Both& b) -> task<> {
        const auto until = std::chrono::steady_clock::now() + 20s;
        while (!b.client.session() && std::chrono::steady_clock::now() < until) {
            co_await coil::yield();
        }
        EXPECT_TRUE(b.client.session());
        EXPECT_EQ(co_await b.client.write_some({"q", 1}), 1);
    };
    auto read = [](Both& b) -> task<> { EXPECT_EQ(co_await read_exactly(b.client, 1), "a"); };
    co_await when_all(serve(both), ask(both), read(both));
}

TEST(TlsTickets, AreSentBeforeAReadWaits) {
    auto main = []() -> task<> {
        two_ends sockets;
        co_await tls_test::expect_handshake(sockets);
        co_await expect_tickets_while_the_server_reads(sockets);
        observed_ends observed;
        co_await expect_handshake(observed);
        co_await expect_tickets_while_the_server_reads(observed);
        EXPECT_EQ(observed.of_server.writes, 3);
    };
    coil::run(main());
}

/// The last flight of TLS 1.2 contains the server's Finished message.
TEST(TlsTickets, OfTls12DoNotWait) {
    auto main = []() -> task<> {
        tls::context ctx = server_context();
        ctx.set_versions(tls::version::tls_1_2, tls::version::tls_1_2);
        two_ends both(client_context(), ctx);
        co_await tls_test::expect_handshake(both);
        EXPECT_TRUE(both.client.session());
    };
    coil::run(main());
}

/// Tickets that could not be sent are sent by the next call, before its data.
TEST(TlsTickets, ARepeatedReadSendsWhatACancelledOneDidNot) {
    auto main = []() -> task<> {
        observed_ends both;
        co_await expect_handshake(both);
        char byte = 0;
        EXPECT_EQ(co_await coil::timeout(both.server.read_some({&byte, 1}), 1ms), -ETIMEDOUT);
        co_await expect_tickets_while_the_server_reads(both);
    };
    coil::run(main());
}

} // namespace
