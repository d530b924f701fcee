// prefer_kernel_sending(): records that a kernel encrypts, and what happens where it does not.

#include "tls/kernel_support.hpp"

#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

using namespace coil;
using namespace tls_test;

namespace {

struct suite {
    tls::version version;
    const char* name;
};

tls::context with_suite(tls::context ctx, const suite& s) {
    ctx.set_versions(s.version, s.version);
    const int done = s.version == tls::version::tls_1_3
                         ? SSL_CTX_set_ciphersuites(ctx.native_handle(), s.name)
                         : SSL_CTX_set_cipher_list(ctx.native_handle(), s.name);
    EXPECT_EQ(done, 1) << s.name;
    return ctx;
}

const suite suites[] = {
    {tls::version::tls_1_3, "TLS_AES_128_GCM_SHA256"},
    {tls::version::tls_1_3, "TLS_AES_256_GCM_SHA384"},
    {tls::version::tls_1_3, "TLS_CHACHA20_POLY1305_SHA256"},
    {tls::version::tls_1_2, "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {tls::version::tls_1_2, "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {tls::version::tls_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305"},
};

TEST(TlsKernelSending, EachCipherAndVersionOnEachSide) {
    auto main = [](const suite& s, int sides) -> task<> {
        tls::context client = with_suite(client_context(), s);
        tls::context server = with_suite(server_context(), s);
        if ((sides & 1) != 0) {
            client.prefer_kernel_sending();
        }
        if ((sides & 2) != 0) {
            server.prefer_kernel_sending();
        }
        two_ends both = co_await tcp_ends(client, server);
        co_await expect_handshake(both);
        EXPECT_EQ(both.client.kernel_sends(), (sides & 1) != 0) << both.client.kernel_refusal();
        EXPECT_EQ(both.server.kernel_sends(), (sides & 2) != 0) << both.server.kernel_refusal();
        EXPECT_EQ(both.client.kernel_refusal(), "");
        EXPECT_EQ(both.server.kernel_refusal(), "");
        EXPECT_EQ(both.server.cipher(), s.name);
        co_await exchange_text(both, pattern(300'000));
        EXPECT_EQ(co_await both.client.shutdown(), 0);
        EXPECT_EQ(co_await both.server.shutdown(), 0);
    };
    for (const suite& s : suites) {
        for (const int sides : {1, 2, 3}) {
            SCOPED_TRACE(std::string(s.name) + " sides " + std::to_string(sides));
            const auto plan = make_plan();
            run_with(plan, main(s, sides));
            EXPECT_EQ(plan->sockets, sides == 3 ? 2 : 1);
            EXPECT_EQ(plan->messages[21], sides == 3 ? 2 : 1); // close_notify
        }
    }
}

TEST(TlsKernelSending, IsOffUnlessTheContextPrefersIt) {
    auto main = []() -> task<> {
        two_ends both = co_await tcp_ends(client_context(), server_context());
        co_await expect_handshake(both);
        EXPECT_FALSE(both.server.kernel_sends());
        EXPECT_EQ(both.server.kernel_refusal(), "");
        co_await exchange_text(both, pattern(10'000));
    };
    const auto plan = make_plan();
    run_with(plan, main());
    EXPECT_EQ(plan->sockets, 0);
}

TEST(TlsKernelSending, TicketsAreSentAsHandshakeRecordsAndResume) {
    auto main = []() -> task<> {
        tls::session session;
        {
            two_ends both = co_await kernel_ends();
            EXPECT_EQ(co_await both.server.write_some("x"), 1);
            EXPECT_EQ(co_await read_exactly(both.client, 1), "x");
            session = both.client.session();
            EXPECT_TRUE(session);
        }
        // The ticket's key belongs to a context, so a second connection needs the same one.
        const tls::context client = client_context();
        const tls::context server = kernel_server_context();
        for (int i = 0; i < 2; ++i) {
            two_ends both = co_await tcp_ends(client, server);
            if (i == 1) {
                both.client.resume(session);
            }
            co_await expect_handshake(both);
            EXPECT_EQ(both.client.resumed(), i == 1);
            EXPECT_TRUE(both.server.kernel_sends());
            EXPECT_EQ(co_await both.server.write_some("x"), 1);
            EXPECT_EQ(co_await read_exactly(both.client, 1), "x");
            session = both.client.session();
        }
    };
    const auto plan = make_plan();
    run_with(plan, main());
    EXPECT_GE(plan->messages[22], 3);
}

TEST(TlsKernelSending, AnAlertOfTheHandshakeReachesThePeer) {
    auto main = []() -> task<> {
        tls::context server = kernel_server_context();
        server.trust_pem(certificates().root.certificate_pem()).require_client_certificates();
        two_ends both = co_await tcp_ends(client_context(), server);
        auto serving = spawn(as_server(both.server));
        EXPECT_EQ(co_await both.client.handshake("example.test"), 0);
        EXPECT_EQ(co_await serving, -EPROTO);
        EXPECT_TRUE(both.server.kernel_sends()); // it had the keys already
        char buf[8];
        EXPECT_EQ(co_await both.client.read_some(buf), -EPROTO);
        EXPECT_NE(both.client.last_error().find("certificate required"), std::string::npos)
            << both.client.last_error();
    };
    const auto plan = make_plan();
    run_with(plan, main());
    EXPECT_EQ(plan->messages[21], 1);
}

TEST(TlsKernelSending, NewKeysOfThePeerAreReceived) {
    auto main = []() -> task<> {
        two_ends both = co_await kernel_ends();
        EXPECT_EQ(co_await both.server.update_keys(), -EOPNOTSUPP);
        EXPECT_EQ(SSL_key_update(both.client.native_handle(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        co_await exchange_text(both, pattern(100'000));
    };
    run_with(make_plan(), main());
}

/// The peer requires new keys before `send` sends data.
task<> expect_end(task<int> (*send)(tls::stream&)) {
    two_ends both = co_await kernel_ends();
    EXPECT_EQ(co_await both.client.update_keys(), 0);
    EXPECT_EQ(co_await both.client.write_some("q"), 1);
    EXPECT_EQ(co_await read_exactly(both.server, 1), "q"); // receiving goes on
    EXPECT_EQ(co_await send(both.server), -EPROTO);
    EXPECT_NE(both.server.last_error().find("requires new keys"), std::string::npos)
        << both.server.last_error();
    EXPECT_EQ(co_await both.server.write_some("x"), -EPROTO);
    // The peer learns it by an alert.
    char buf[8];
    EXPECT_EQ(co_await both.client.read_some(buf), -EPROTO);
    EXPECT_NE(both.client.last_error().find("internal error"), std::string::npos)
        << both.client.last_error();
}

TEST(TlsKernelSending, APeerThatRequiresNewKeysEndsTheConnection) {
    run_with(make_plan(), expect_end([](tls::stream& to) -> task<int> {
                 co_return co_await to.write_some("x");
             }));
    run_with(make_plan(), expect_end([](tls::stream& to) -> task<int> {
                 const fs::file file = co_await file_with(pattern(100'000));
                 co_return co_await sendfile(to, file);
             }));
}

TEST(TlsKernelSending, ASendThatFailsIsReportedByTheNextCall) {
    auto main = [](kernel_plan& plan) -> task<> {
        two_ends both = co_await kernel_ends();
        plan.break_sending = true;
        EXPECT_EQ(co_await both.server.write_some("x"), 1); // accepted
        EXPECT_EQ(co_await both.server.write_some("y"), -EPIPE);
        const fs::file file = co_await file_with(pattern(100'000));
        EXPECT_EQ(co_await sendfile(both.server, file), -EPIPE);
        EXPECT_EQ(co_await both.server.shutdown_write(), -EPIPE);
        plan.break_sending = false; // nothing was lost
        EXPECT_EQ(co_await both.server.shutdown_write(), 0);
        EXPECT_EQ(co_await read_to_end(both.client), "x");
    };
    const auto plan = make_plan();
    run_with(plan, main(*plan));
}

/// A connection whose server prefers the kernel but does not get it; it works as usual.
task<> expect_refusal(tls::context client, tls::context server, std::string why) {
    server.prefer_kernel_sending();
    two_ends both = co_await tcp_ends(client, server);
    co_await expect_handshake(both);
    EXPECT_FALSE(both.server.kernel_sends());
    EXPECT_EQ(both.server.kernel_refusal(), why);
    co_await exchange_text(both, pattern(100'000));
}

TEST(TlsKernelSending, AKernelThatRefusesAtEachStep) {
    auto main = [](std::string why) {
        return expect_refusal(client_context(), server_context(), std::move(why));
    };
    const auto plan = make_plan();
    plan->attach_error = -ENOENT;
    run_with(plan, main("the kernel has no TLS (module tls)"));
    plan->attach_error = -EPERM;
    run_with(plan, main("the kernel refuses TLS on the socket: Operation not permitted"));
    plan->attach_error = 0;
    plan->keys_error = -EINVAL;
    run_with(plan, main("the kernel refuses the cipher: Invalid argument"));
    EXPECT_EQ(plan->sockets, 0);
}

TEST(TlsKernelSending, ACipherThatIsNotHandedOver) {
    const auto plan = make_plan();
    const suite cbc{tls::version::tls_1_2, "ECDHE-ECDSA-AES128-SHA256"};
    run_with(plan,
             expect_refusal(with_suite(client_context(), cbc), with_suite(server_context(), cbc),
                            "OpenSSL does not hand the keys of this cipher to a kernel"));
    EXPECT_EQ(plan->sockets, 0);
}

TEST(TlsKernelSending, TransportsThatAreNotTcpSockets) {
    auto unix_sockets = []() -> task<> {
        two_ends both(client_context(), kernel_server_context());
        co_await expect_handshake(both);
        EXPECT_FALSE(both.server.kernel_sends());
        EXPECT_EQ(both.server.kernel_refusal(), "the transport is not a TCP socket");
        co_await exchange_text(both, pattern(10'000));
    };
    run_with(make_plan(), unix_sockets());
    auto tls_in_tls = []() -> task<> {
        two_ends outer(client_context(), server_context());
        co_await expect_handshake(outer);
        tls::basic_stream inner(std::move(outer.server), kernel_server_context());
        tls::basic_stream client(std::move(outer.client), client_context());
        auto serving = spawn(inner.accept());
        EXPECT_EQ(co_await client.handshake("example.test"), 0);
        EXPECT_EQ(co_await serving, 0);
        EXPECT_EQ(inner.kernel_refusal(), "the transport is not a TCP socket");
    };
    run_with(make_plan(), tls_in_tls());
    auto simulated = []() -> task<> {
        two_ends both = co_await tcp_ends(client_context(), kernel_server_context());
        co_await expect_handshake(both);
        EXPECT_FALSE(both.server.kernel_sends());
        EXPECT_NE(both.server.kernel_refusal(), "");
        co_await exchange_text(both, pattern(10'000));
    };
    sim::world w(1);
    w.host("a").co_spawn(simulated());
    w.run();
}

TEST(TlsKernelSending, AHandshakeLargerThanTheSendBuffer) {
    auto main = []() -> task<> {
        std::string chain = certificates().server.certificate_pem();
        for (int i = 0; i < 120; ++i) {
            chain += certificates().root.certificate_pem();
        }
        net::acceptor listener(net::inet_address("127.0.0.1", 0));
        std::pair<net::socket, net::socket> sockets;
        sockets.first = net::socket::create_tcp();
        const int least = 1;
        ::setsockopt(sockets.first.native_handle(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
        EXPECT_EQ(co_await sockets.first.connect(listener.local_address()), 0);
        sockets.second = co_await listener.accept();
        ::setsockopt(sockets.second.native_handle(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
        tls::context server = tls::context::server(
            tls::certificate::from_pem(chain, certificates().server.key_pem()));
        server.prefer_kernel_sending();
        two_ends both(std::move(sockets), client_context(), server);
        co_await expect_handshake(both);
        EXPECT_FALSE(both.server.kernel_sends());
        EXPECT_EQ(both.server.kernel_refusal(),
                  "the socket did not take the whole handshake at once");
        co_await exchange_text(both, pattern(3'000));
    };
    run_with(make_plan(), main());
}

// Without a double.
TEST(TlsKernelSending, ThisKernel) {
    auto main = [](bool& has_tls) -> task<> {
        two_ends both = co_await tcp_ends(client_context(), kernel_server_context());
        co_await expect_handshake(both);
        has_tls = both.server.kernel_sends();
        if (!has_tls) {
            EXPECT_EQ(both.server.kernel_refusal(), "the kernel has no TLS (module tls)");
        }
        const std::string text = pattern(1'000'000);
        const fs::file file = co_await file_with(text);
        const auto [sent, got] = co_await when_all(sendfile(both.server, file, 0, text.size()),
                                                   read_exactly(both.client, text.size()));
        EXPECT_EQ(sent, 1'000'000);
        EXPECT_TRUE(got == text);
        co_await exchange_text(both, text);
    };
    bool has_tls = false;
    coil::run(main(has_tls));
    if (!has_tls) {
        GTEST_SKIP() << "this kernel has no TLS (module tls); OpenSSL encrypted, as it must";
    }
}

} // namespace
