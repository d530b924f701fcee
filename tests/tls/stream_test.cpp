// Streams after the handshake: both directions, ends, damage, keys, cancellation.

#include "tls/support.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

using namespace coil;
using namespace tls_test;

namespace {

static_assert(byte_stream<tls::stream>);

template <class Stream>
task<> send_everything(Stream& to, const std::string& text) {
    EXPECT_EQ(co_await write_all(to, text), static_cast<int>(text.size())) << to.last_error();
    EXPECT_EQ(co_await to.shutdown_write(), 0);
}

template <class Stream>
task<> expect_everything(Stream& from, const std::string& text) {
    const std::string got = co_await read_to_end(from);
    EXPECT_TRUE(got == text) << got.size() << " of " << text.size();
}

template <class Stream>
task<> exchange(Stream& a, Stream& b, const std::string& text) {
    co_await when_all(send_everything(a, text), expect_everything(a, text),
                      send_everything(b, text), expect_everything(b, text));
}

TEST(TlsStream, AMebibyteInBothDirectionsAtOnce) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        const std::string text = pattern(1 << 20);
        co_await exchange(both.client, both.server, text);
        EXPECT_EQ(co_await both.client.shutdown(), 0);
        EXPECT_EQ(co_await both.server.shutdown(), 0);
    };
    coil::run(main());
}

TEST(TlsStream, SizesAroundARecord) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        for (const std::size_t size : {1U, 2U, 255U, 511U, 512U, 513U, 16383U, 16384U, 16385U,
                                       65535U, 65536U, 65537U, 200000U}) {
            const std::string text = pattern(size);
            auto sending = coil::spawn([](tls::stream& s, const std::string& t) -> task<> {
                EXPECT_EQ(co_await write_all(s, t), static_cast<int>(t.size()));
            }(both.client, text));
            EXPECT_TRUE(co_await read_exactly(both.server, size) == text) << size;
            co_await sending;
        }
        EXPECT_EQ(co_await both.client.write_some(""), 0);
        char none;
        EXPECT_EQ((co_await both.client.read_some({&none, 0})), 0);
    };
    coil::run(main());
}

TEST(TlsStream, CloseNotifyEndsOneDirectionAndTheOtherContinues) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(co_await both.client.write_some("question"), 8);
        EXPECT_EQ(co_await both.client.shutdown_write(), 0);
        EXPECT_EQ(co_await both.client.write_some("more"), -EPIPE);
        EXPECT_EQ(co_await both.client.shutdown_write(), 0); // again
        EXPECT_EQ(co_await read_to_end(both.server), "question");
        EXPECT_EQ(co_await both.server.write_some("answer"), 6);
        EXPECT_EQ(co_await both.server.shutdown(), 0);
        EXPECT_EQ(co_await read_to_end(both.client), "answer");
        EXPECT_EQ(co_await both.client.shutdown(), 0);
    };
    coil::run(main());
}

TEST(TlsStream, ShutdownWaitsForThePeerAndDiscardsItsData) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(co_await both.server.write_some(pattern(3000)), 3000);
        auto closing = coil::spawn(
            [](tls::stream& s) -> task<int> { co_return co_await s.shutdown(); }(both.client));
        co_await sleep_for(1ms);
        EXPECT_FALSE(closing.done());
        EXPECT_EQ(co_await timeout(both.client.write_some("x"), 1s), -EPIPE);
        EXPECT_EQ(co_await both.server.shutdown(), 0);
        EXPECT_EQ(co_await closing, 0);
    };
    coil::run(main());
}

TEST(TlsStream, ShutdownAfterThePeerHasClosedEverything) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(co_await both.server.shutdown_write(), 0);
        EXPECT_EQ(co_await both.server.transport().close(), 0);
        // EPIPE, but the peer's close_notify has arrived.
        EXPECT_EQ(co_await both.client.shutdown(), 0);
    };
    coil::run(main());
}

TEST(TlsStream, TruncationIsNotTheEnd) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        EXPECT_EQ(co_await both.server.write_some("all"), 3);
        EXPECT_EQ(co_await both.server.transport().shutdown_write(), 0);
        EXPECT_EQ(co_await read_exactly(both.client, 3), "all"); // earlier data is returned
        char buf[8];
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(co_await both.client.read_some(buf), -ECONNABORTED);
            EXPECT_NE(both.client.last_error().find("truncated"), std::string::npos);
        }
        EXPECT_EQ(co_await both.client.write_some("x"), -ECONNABORTED);
        EXPECT_EQ(co_await both.client.shutdown(), -ECONNABORTED);
    };
    coil::run(main());
}

TEST(TlsStream, TruncationInARecordAndInAHandshake) {
    auto main = []() -> task<> {
        two_ends both;
        auto serving = coil::spawn(as_server(both.server));
        EXPECT_EQ(co_await both.client.transport().send("\x16\x03\x01"), 3);
        EXPECT_EQ(co_await both.client.transport().shutdown_write(), 0);
        EXPECT_EQ(co_await serving, -ECONNABORTED);
        EXPECT_NE(both.server.last_error().find("during the handshake"), std::string::npos);

        two_ends later;
        co_await expect_handshake(later);
        EXPECT_EQ(co_await later.server.transport().send("\x17\x03\x03\x01"), 4);
        EXPECT_EQ(co_await later.server.transport().shutdown_write(), 0);
        char buf[8];
        EXPECT_EQ(co_await later.client.read_some(buf), -ECONNABORTED);
    };
    coil::run(main());
}

TEST(TlsStream, GarbageFromThePeer) {
    auto main = []() -> task<> {
        for (const std::string& garbage :
             {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(2000, '\0'),
              std::string("\x16\x03\x01\xff\xff") + pattern(70000), pattern(100)}) {
            two_ends both;
            auto serving = coil::spawn(as_server(both.server));
            EXPECT_GT(co_await both.client.transport().send(garbage), 0);
            const int result = co_await timeout(std::move(serving), 10s);
            EXPECT_EQ(result, -EPROTO) << both.server.last_error();
            EXPECT_NE(both.server.last_error(), "");
            EXPECT_EQ(co_await both.server.accept(), -EPROTO); // the error is permanent

            two_ends later;
            co_await expect_handshake(later);
            EXPECT_GT(co_await later.server.transport().send(garbage), 0);
            char buf[8];
            EXPECT_EQ(co_await later.client.read_some(buf), -EPROTO) << later.client.last_error();
            EXPECT_EQ(co_await later.client.write_some("x"), -EPROTO);
            EXPECT_EQ(ERR_peek_error(), 0U);
        }
    };
    coil::run(main());
}

/// A transport that transfers one byte per call.
class trickle {
public:
    explicit trickle(net::socket s) : socket_(std::move(s)) {}
    auto read_some(mutable_buffer to) { return socket_.read_some({to.data(), one(to.size())}); }
    auto write_some(const_buffer from) {
        return socket_.write_some({from.data(), one(from.size())});
    }
    auto shutdown_write() { return socket_.shutdown_write(); }

private:
    static std::size_t one(std::size_t size) { return std::min<std::size_t>(size, 1); }
    net::socket socket_;
};

TEST(TlsStream, OverATransportThatTricklesOneByteAtATime) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        tls::basic_stream client{trickle(std::move(a)), client_context()};
        tls::basic_stream server{trickle(std::move(b)), server_context()};
        const std::string text = pattern(2000);
        // Both sides run concurrently, because the session tickets of a server need more
        // single-byte writes than a Unix socket holds.
        auto serve = [](auto& s, const std::string& t) -> task<> {
            EXPECT_EQ(co_await s.accept(), 0);
            co_await when_all(send_everything(s, t), expect_everything(s, t));
        };
        auto serving = coil::spawn(serve(server, text));
        EXPECT_EQ(co_await client.handshake("example.test"), 0);
        co_await when_all(send_everything(client, text), expect_everything(client, text));
        co_await serving;
    };
    coil::run(main());
}

TEST(TlsStream, OverATlsStream) {
    auto main = []() -> task<> {
        auto [a, b] = net::socket::pair();
        tls::basic_stream client{tls::stream(std::move(a), client_context()), client_context()};
        tls::basic_stream server{tls::stream(std::move(b), server_context()), server_context()};
        auto accepting = [](auto& s) -> task<int> {
            const int outer = co_await s.transport().accept();
            if (outer < 0) {
                co_return outer;
            }
            co_return co_await s.accept();
        };
        auto serving = coil::spawn(accepting(server));
        EXPECT_EQ(co_await client.transport().handshake("example.test"), 0);
        EXPECT_EQ(co_await client.handshake("example.test"), 0);
        EXPECT_EQ(co_await serving, 0);
        co_await exchange(client, server, pattern(100'000));
    };
    coil::run(main());
}

TEST(TlsStream, KeyUpdatesInBothDirectionsWhileDataFlows) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        auto update = [](tls::stream& s) -> task<> {
            for (int i = 0; i < 20; ++i) {
                EXPECT_EQ(co_await s.update_keys(), 0) << s.last_error();
                co_await yield();
            }
        };
        const std::string text = pattern(1 << 20);
        auto send = [](tls::stream& s, const std::string& t) -> task<> {
            EXPECT_EQ(co_await write_all(s, t), static_cast<int>(t.size()));
        };
        auto receive = [](tls::stream& s, const std::string& t) -> task<> {
            EXPECT_TRUE(co_await read_exactly(s, t.size()) == t);
        };
        co_await when_all(update(both.client), update(both.server), send(both.client, text),
                          send(both.server, text), receive(both.client, text),
                          receive(both.server, text));
        EXPECT_EQ(co_await both.client.shutdown_write(), 0);
        EXPECT_EQ(co_await both.server.shutdown_write(), 0);
        EXPECT_EQ(co_await read_to_end(both.client), "");
        EXPECT_EQ(co_await read_to_end(both.server), "");
    };
    coil::run(main());
}

TEST(TlsStream, AReadThatMustWriteDoesNotWaitForThePeer) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        // The server does not read, so that nothing more can be sent to it.
        const std::string text = pattern(64 * 1024);
        int accepted = 0;
        while (accepted < (64 << 20)) {
            const int n = co_await timeout(both.client.write_some(text), 20ms);
            if (n < 0) {
                EXPECT_EQ(n, -ETIMEDOUT);
                break;
            }
            accepted += n;
        }
        EXPECT_EQ(co_await both.server.update_keys(), 0); // asks the client to update its keys, too
        EXPECT_EQ(co_await both.server.write_some("data"), 4);
        char buf[8];
        EXPECT_EQ(co_await timeout(both.client.read_some(buf), 5s), 4);
        // The client answers the key update before it sends more data.
        auto sending = coil::spawn([](tls::stream& s) -> task<> {
            EXPECT_EQ(co_await s.write_some("last"), 4);
            EXPECT_EQ(co_await s.shutdown_write(), 0);
        }(both.client));
        const std::string got = co_await read_to_end(both.server);
        co_await sending;
        EXPECT_TRUE(got.ends_with("last"));
        EXPECT_GE(got.size(), static_cast<std::size_t>(accepted) + 4);
    };
    coil::run(main());
}

TEST(TlsStream, RenegotiationIsRefused) {
    auto main = []() -> task<> {
        tls::context old = client_context();
        old.set_versions(tls::version::tls_1_2, tls::version::tls_1_2);
        two_ends both(old, server_context());
        co_await expect_handshake(both);
        SSL* const ssl = both.client.native_handle();
        EXPECT_EQ(SSL_renegotiate(ssl), 0); // not even started
        ERR_clear_error();
        SSL_clear_options(ssl, SSL_OP_NO_RENEGOTIATION);
        EXPECT_EQ(SSL_renegotiate(ssl), 1);
        auto writing = coil::spawn([](tls::stream& s) -> task<int> {
            co_return co_await s.write_some("after it");
        }(both.client));
        char buf[16];
        const int n = co_await timeout(both.server.read_some(buf), 10s);
        EXPECT_LT(n, 0); // the client gives up
        EXPECT_EQ(co_await writing, -EPROTO);
        EXPECT_NE(both.client.last_error().find("no renegotiation"), std::string::npos)
            << both.client.last_error();
    };
    coil::run(main());
}

TEST(TlsStream, OtherUsersOfOpensslDoNotDisturbIt) {
    auto main = []() -> task<> {
        two_ends both;
        ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
        co_await expect_handshake(both);
        ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
        EXPECT_EQ(co_await both.server.write_some("x"), 1);
        ERR_raise(ERR_LIB_SSL, SSL_R_CERTIFICATE_VERIFY_FAILED);
        EXPECT_EQ(co_await read_exactly(both.client, 1), "x");
    };
    coil::run(main());
}

TEST(TlsStream, BufferedReadersAndCopyWork) {
    auto main = []() -> task<> {
        two_ends both;
        co_await expect_handshake(both);
        auto serve = [](tls::stream s) -> task<> {
            buffered_reader in{s};
            buffered_writer out{s};
            while (auto line = co_await in.read_until('\n')) {
                co_await out.write("<");
                co_await out.write(*line);
                co_await out.write(">\n");
                (co_await out.flush()).value();
            }
            EXPECT_EQ(co_await s.shutdown(), 0);
        };
        auto serving = coil::spawn(serve(std::move(both.server)));
        EXPECT_EQ(co_await write_all(both.client, "one\ntwo\n"), 8);
        EXPECT_EQ(co_await both.client.shutdown_write(), 0);
        EXPECT_EQ(co_await read_to_end(both.client), "<one>\n<two>\n");
        co_await serving;
    };
    coil::run(main());
}

// mistake 13: a tls::stream is used on two contexts at once
TEST(TlsStreamDeathTest, OnTwoContextsAtOnce) {
    tls::detail::engine shared(client_context());
    ASSERT_EQ(shared.begin_client("example.org"), 0);
    const auto uses = [](tls::detail::engine& e) -> task<> {
        static_cast<void>(e.handshake());
        co_return;
    };
    {
        tls::detail::transfer elsewhere(shared); // not on the context of run()
        EXPECT_DEATH(coil::run(uses(shared)),
                     "coil: a tls::stream is used on a context while another one uses it");
        elsewhere.over();
    }
    coil::run(uses(shared)); // one after the other
}

} // namespace
