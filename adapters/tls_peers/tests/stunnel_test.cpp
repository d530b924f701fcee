// stunnel as a peer: it encrypts for a client without TLS, and decrypts for a server without TLS.

#include "tls_peers/tests/peers.hpp"

#include <coil/stream/copy.hpp>

#include <string>
#include <vector>

using namespace coil;
using namespace tls_peers_test;

namespace {

class Stunnel : public testing::TestWithParam<const char*> {
public:
    void SetUp() override { TLS_PEERS_NEED("stunnel4", "stunnel4"); }

    /// Starts stunnel with a service that has these options.
    server_process start(std::uint16_t port, std::uint16_t to, const std::string& options) {
        files.write("conf", "foreground = yes\npid =\nsyslog = no\n[peer]\nsslVersion = TLSv" +
                                version + "\naccept = 127.0.0.1:" + std::to_string(port) +
                                "\nconnect = 127.0.0.1:" + std::to_string(to) + "\nCAfile = " +
                                files["root.pem"] + "\nverifyChain = yes\n" + options);
        return {{"stunnel4", files["conf"]}, port, files["log"]};
    }

    const std::string version = GetParam();
    const pem_files files;
};

INSTANTIATE_TEST_SUITE_P(Versions, Stunnel, testing::Values("1.2", "1.3"), [](const auto& tested) {
    return std::string(tested.param) == "1.2" ? "Tls12" : "Tls13";
});

/// Sends everything back to each client, without TLS.
task<> serve_in_clear(net::acceptor& acceptor, int clients) {
    for (int i = 0; i < clients; ++i) {
        net::socket peer = co_await acceptor.accept();
        co_await copy(peer, peer);
        co_await peer.shutdown_write();
    }
}

TEST_P(Stunnel, DecryptsForAServer) {
    auto main = [](Stunnel& test) -> task<> {
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        // The first client of the server is the one that has found stunnel's port open.
        const std::uint16_t port = free_port();
        const server_process peer =
            test.start(port, acceptor.local_address().port(),
                       "cert = " + test.files["cert.pem"] + "\nkey = " + test.files["key.pem"] +
                           "\nrequireCert = yes\n");
        auto serving = coil::spawn(serve_in_clear(acceptor, 2));
        tls::context ctx = with_version(client_context(), test.version);
        ctx.use_certificate(as_certificate(certificates().client));
        tls::session session;
        for (int i = 0; i < 2; ++i) {
            tls::stream s = co_await connect_to(port, ctx);
            s.resume(session);
            EXPECT_EQ(co_await timeout(s.handshake("example.test"), 20s), 0) << s.last_error();
            EXPECT_EQ(s.version(), "TLSv" + test.version);
            EXPECT_EQ(s.resumed(), i == 1);
            co_await echo(s, 6);
            co_await echo(s, 300'000);
            session = s.session();
            EXPECT_EQ(co_await timeout(s.shutdown(), 20s), 0) << s.last_error();
        }
        co_await timeout(std::move(serving), 20s);

        // A client without a certificate is refused.
        tls::stream s = co_await connect_to(port, with_version(client_context(), test.version));
        int result = co_await timeout(s.handshake("example.test"), 20s);
        char byte = 0;
        if (result == 0) {
            result = co_await timeout(s.read_some({&byte, 1}), 20s);
        }
        EXPECT_EQ(result, -EPROTO);
    };
    coil::run(main(*this));
}

/// Serves clients until one has sent something: not the one that has found stunnel's port open.
task<std::string> serve_tls(net::acceptor& acceptor, const tls::context& ctx, std::string& name) {
    for (;;) {
        tls::stream s{co_await acceptor.accept(), ctx};
        if (co_await timeout(s.accept(), 20s) == 0 && co_await send_back(s) > 0) {
            name = s.server_name();
            co_return s.peer_subject();
        }
    }
}

TEST_P(Stunnel, EncryptsForAClient) {
    auto main = [](Stunnel& test) -> task<> {
        tls::context ctx = with_version(server_context(), test.version);
        ctx.trust_file(test.files["root.pem"]).require_client_certificates();
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        const std::uint16_t port = free_port();
        const server_process peer =
            test.start(port, acceptor.local_address().port(),
                       "client = yes\nsni = example.test\ncheckHost = example.test\ncert = " +
                           test.files["client.pem"] + "\n");
        std::string name;
        auto serving = coil::spawn(serve_tls(acceptor, ctx, name));
        net::socket plain = net::socket::create_tcp();
        const int connected =
            co_await plain.connect(net::endpoint("127.0.0.1:" + std::to_string(port)));
        EXPECT_EQ(connected, 0);
        const std::string sent = pattern(300'000);
        auto writing = coil::spawn(write_all(plain, sent));
        buffered_reader in{plain};
        std::string got(sent.size(), '\0');
        EXPECT_EQ(co_await timeout(in.read_exact({got.data(), got.size()}), 20s),
                  static_cast<int>(got.size()));
        co_await std::move(writing);
        EXPECT_TRUE(got == sent);
        co_await plain.shutdown_write(); // becomes a close_notify, which the server answers
        char byte = 0;
        EXPECT_EQ(co_await timeout(plain.read_some({&byte, 1}), 20s), 0);
        EXPECT_EQ(co_await timeout(std::move(serving), 20s), "CN = client");
        EXPECT_EQ(name, "example.test");
    };
    coil::run(main(*this));
}

} // namespace
