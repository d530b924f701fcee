// gnutls-cli and gnutls-serv as peers.

#include "tls_peers/tests/peers.hpp"

#include <csignal>
#include <string>
#include <vector>

using namespace coil;
using namespace tls_peers_test;

namespace {

std::string priority(const std::string& version) { return "NORMAL:-VERS-ALL:+VERS-TLS" + version; }

class GnuTls : public testing::TestWithParam<const char*> {
public:
    void SetUp() override {
        TLS_PEERS_NEED("gnutls-cli", "gnutls-bin");
        TLS_PEERS_NEED("gnutls-serv", "gnutls-bin");
    }

    /// The command of a server that sends everything back.
    std::vector<std::string> serve(std::uint16_t port, const std::string& client_certificates) {
        std::vector<std::string> argv{"gnutls-serv",    "--echo",
                                      "--quiet",        "--nodb",
                                      "--port",         std::to_string(port),
                                      "--priority",     priority(version),
                                      "--x509cafile",   files["root.pem"],
                                      "--x509certfile", files["cert.pem"],
                                      "--x509keyfile",  files["key.pem"],
                                      "--alpn",         "coil",
                                      "--alpn-fatal"};
        argv.push_back(client_certificates);
        if (client_certificates == "--require-client-cert") {
            argv.emplace_back("--verify-client-cert");
        }
        return argv;
    }
    /// The command of a client that sends what it reads from its standard input.
    std::vector<std::string> ask(std::uint16_t port, const char* authorities) {
        return {"gnutls-cli",
                "--logfile",
                files["log"],
                "--port",
                std::to_string(port),
                "--priority",
                priority(version),
                "--x509cafile",
                files[authorities],
                "--x509certfile",
                files["client.pem"],
                "--x509keyfile",
                files["client.pem"],
                "--sni-hostname",
                "example.test",
                "--verify-hostname",
                "example.test",
                "--alpn",
                "coil",
                "127.0.0.1"};
    }

    const std::string version = GetParam();
    const pem_files files;
};

INSTANTIATE_TEST_SUITE_P(Versions, GnuTls, testing::Values("1.2", "1.3"), [](const auto& tested) {
    return std::string(tested.param) == "1.2" ? "Tls12" : "Tls13";
});

tls::context client_with_certificate(const std::string& version) {
    tls::context ctx = with_version(client_context(), version);
    ctx.use_certificate(as_certificate(certificates().client)).set_alpn({"other", "coil"});
    return ctx;
}

TEST_P(GnuTls, ServesAClientWithACertificate) {
    const std::uint16_t port = free_port();
    const server_process server(serve(port, "--require-client-cert"), port, files["log"]);
    auto main = [](std::uint16_t port, std::string version) -> task<> {
        const tls::context ctx = client_with_certificate(version);
        tls::stream s = co_await connect_to(port, ctx);
        EXPECT_EQ(co_await timeout(s.handshake("example.test"), 20s), 0) << s.last_error();
        EXPECT_EQ(s.version(), "TLSv" + version);
        EXPECT_EQ(s.alpn(), "coil");
        EXPECT_EQ(s.peer_subject(), "CN = example.test");
        co_await echo(s, 6);
        co_await echo(s, 300'000);
        if (version == "1.3") {
            EXPECT_EQ(co_await s.update_keys(), 0);
            co_await echo(s, 40'000);
        }
        EXPECT_EQ(co_await timeout(s.shutdown(), 20s), 0) << s.last_error();

        tls::stream again = co_await connect_to(port, ctx);
        again.resume(s.session());
        EXPECT_EQ(co_await timeout(again.handshake("example.test"), 20s), 0) << again.last_error();
        EXPECT_TRUE(again.resumed());
        co_await echo(again, 6);
        EXPECT_EQ(co_await timeout(again.shutdown(), 20s), 0) << again.last_error();
    };
    coil::run(main(port, version));
}

TEST_P(GnuTls, RefusesAClientWithoutACertificate) {
    const std::uint16_t port = free_port();
    const server_process server(serve(port, "--require-client-cert"), port, files["log"]);
    auto main = [](std::uint16_t port, std::string version) -> task<> {
        tls::context ctx = with_version(client_context(), version);
        ctx.set_alpn({"coil"});
        tls::stream s = co_await connect_to(port, ctx);
        int result = co_await timeout(s.handshake("example.test"), 20s);
        char byte = 0;
        if (result == 0) { // a client of TLS 1.3 does not wait for the server's verdict
            EXPECT_EQ(version, "1.3");
            result = co_await timeout(s.read_some({&byte, 1}), 20s);
        }
        EXPECT_EQ(result, -EPROTO);
        EXPECT_NE(s.last_error().find("alert"), std::string::npos) << s.last_error();
    };
    coil::run(main(port, version));
}

TEST_P(GnuTls, RefusesAnotherProtocol) {
    const std::uint16_t port = free_port();
    const server_process server(serve(port, "--disable-client-cert"), port, files["log"]);
    auto main = [](std::uint16_t port, std::string version) -> task<> {
        tls::context ctx = with_version(client_context(), version);
        ctx.set_alpn({"other"});
        tls::stream s = co_await connect_to(port, ctx);
        EXPECT_EQ(co_await timeout(s.handshake("example.test"), 20s), -EPROTO);
        EXPECT_NE(s.last_error().find("no application protocol"), std::string::npos)
            << s.last_error();
    };
    coil::run(main(port, version));
}

TEST_P(GnuTls, DiesWithoutCloseNotify) {
    const std::uint16_t port = free_port();
    server_process server(serve(port, "--disable-client-cert"), port, files["log"]);
    auto main = [](server_process& server, std::string version) -> task<> {
        tls::context ctx = with_version(client_context(), version);
        ctx.set_alpn({"coil"});
        tls::stream s = co_await connect_to(server.port(), ctx);
        EXPECT_EQ(co_await timeout(s.handshake("example.test"), 20s), 0) << s.last_error();
        co_await echo(s, 6);
        server.kill();
        char byte = 0;
        EXPECT_EQ(co_await timeout(s.read_some({&byte, 1}), 20s), -ECONNABORTED);
    };
    coil::run(main(server, version));
}

/// What a server has seen of one client.
struct served {
    int handshake = 1;
    std::string alpn;
    std::string server_name;
    std::string subject;
    std::string failure;
};

task<served> serve_one(net::acceptor& acceptor, const tls::context& ctx) {
    tls::stream s{co_await acceptor.accept(), ctx};
    served seen;
    seen.handshake = co_await timeout(s.accept(), 20s);
    if (seen.handshake == 0) {
        seen.alpn = s.alpn();
        seen.server_name = s.server_name();
        seen.subject = s.peer_subject();
        co_await send_back(s);
    }
    seen.failure = s.last_error();
    co_return seen;
}

TEST_P(GnuTls, AsksAServerThatWantsACertificate) {
    auto main = [](GnuTls& test) -> task<> {
        tls::context ctx = with_version(server_context(), test.version);
        ctx.trust_file(test.files["root.pem"]).require_client_certificates().set_alpn({"coil"});
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        auto serving = coil::spawn(serve_one(acceptor, ctx));
        auto client = process::spawn(test.ask(acceptor.local_address().port(), "root.pem"));
        const std::string text = std::string(100'000, 'x') + "\n";
        EXPECT_EQ(co_await write_all(client.stdin(), text), static_cast<int>(text.size()));
        co_await client.stdin().close();
        const process_output all = co_await timeout(client.output(), 30s);
        EXPECT_TRUE(all.status.success()) << all.status.to_string() << all.err;
        EXPECT_TRUE(all.out == text) << all.out.size();
        const served seen = co_await timeout(std::move(serving), 30s);
        EXPECT_EQ(seen.handshake, 0) << seen.failure;
        EXPECT_EQ(seen.alpn, "coil");
        EXPECT_EQ(seen.server_name, "example.test");
        EXPECT_EQ(seen.subject, "CN = client");
    };
    coil::run(main(*this));
}

TEST_P(GnuTls, DoesNotTrustTheServer) {
    auto main = [](GnuTls& test) -> task<> {
        test.files.write("stranger.pem", issue("stranger", "", nullptr).certificate_pem());
        const tls::context ctx = with_version(server_context(), test.version);
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        auto serving = coil::spawn(serve_one(acceptor, ctx));
        auto client = process::spawn(test.ask(acceptor.local_address().port(), "stranger.pem"));
        const process_output all = co_await timeout(client.output(), 30s);
        EXPECT_FALSE(all.status.success());
        const served seen = co_await timeout(std::move(serving), 30s);
        EXPECT_LT(seen.handshake, 0);
        EXPECT_NE(seen.failure, "");
    };
    coil::run(main(*this));
}

} // namespace
