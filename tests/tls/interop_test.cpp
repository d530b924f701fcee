// openssl s_client and s_server as peers.

#include "tls/pem_files.hpp"
#include "tls/support.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace coil;
using namespace tls_test;

namespace {

bool has_openssl() { return std::system("openssl version >/dev/null 2>&1") == 0; }

#define TLS_NEEDS_OPENSSL()                                                                        \
    if (!has_openssl()) {                                                                          \
        GTEST_SKIP() << "the program openssl is not installed";                                    \
    }

task<std::string> answer_one(net::acceptor& acceptor, const tls::context& ctx,
                             std::string& subject) {
    tls::stream s{co_await acceptor.accept(), ctx};
    EXPECT_EQ(co_await s.accept(), 0) << s.last_error();
    subject = s.peer_subject();
    buffered_reader in{s};
    const auto line = co_await in.read_until('\n');
    const std::string got(line.value_or("nothing"));
    EXPECT_EQ(co_await write_all(s, "you said " + got + "\n"), static_cast<int>(got.size()) + 10);
    EXPECT_EQ(co_await timeout(s.shutdown(), 10s), 0) << s.last_error();
    co_return got;
}

TEST(TlsInterop, ServesSClient) {
    TLS_NEEDS_OPENSSL();
    auto main = [](const pem_files& files, std::string version) -> task<> {
        tls::context ctx = tls::context::server(files["cert.pem"], files["key.pem"]);
        ctx.trust_file(files["root.pem"]).require_client_certificates().set_alpn({"coil"});
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        std::string subject;
        auto serving = coil::spawn(answer_one(acceptor, ctx, subject));
        const std::string port = std::to_string(acceptor.local_address().port());
        std::vector<std::string> arguments{"openssl",
                                           "s_client",
                                           "-connect",
                                           "127.0.0.1:" + port,
                                           "-CAfile",
                                           files["root.pem"],
                                           "-verify_hostname",
                                           "example.test",
                                           "-servername",
                                           "example.test",
                                           "-alpn",
                                           "coil",
                                           "-cert",
                                           files["client.pem"],
                                           "-verify_return_error",
                                           "-quiet",
                                           version};
        auto client = process::spawn(arguments);
        EXPECT_EQ(co_await write_all(client.stdin(), "hello\n"), 6);
        char buf[64];
        const int n = co_await timeout(client.stdout().read_some(buf), 20s);
        EXPECT_EQ(std::string(buf, static_cast<std::size_t>(std::max(n, 0))), "you said hello\n");
        EXPECT_EQ(co_await timeout(std::move(serving), 20s), "hello");
        EXPECT_EQ(subject, "CN = client");
        const process_output rest = co_await timeout(client.output(), 20s);
        EXPECT_TRUE(rest.status.success()) << rest.status.to_string() << rest.err;
    };
    const pem_files files;
    coil::run(main(files, "-tls1_3"));
    coil::run(main(files, "-tls1_2"));
}

TEST(TlsInterop, AsksSServer) {
    TLS_NEEDS_OPENSSL();
    auto main = [](const pem_files& files, std::string version) -> task<> {
        std::string port;
        {
            net::acceptor free_port{net::inet_address{"127.0.0.1", 0}};
            port = std::to_string(free_port.local_address().port());
        }
        std::vector<std::string> arguments{
            "openssl", "s_server",        "-accept", "127.0.0.1:" + port,
            "-cert",   files["cert.pem"], "-key",    files["key.pem"],
            "-rev",    "-quiet",          "-alpn",   "coil",
            version};
        auto server = process::spawn(arguments);
        net::socket socket = net::socket::create_tcp();
        int connected = -1;
        for (int i = 0; i < 200 && connected < 0; ++i) {
            co_await sleep_for(20ms);
            socket = net::socket::create_tcp();
            connected = co_await socket.connect(net::endpoint("127.0.0.1:" + port));
        }
        EXPECT_EQ(connected, 0);
        tls::context ctx = client_context();
        ctx.set_alpn({"coil"});
        tls::stream s{std::move(socket), ctx};
        EXPECT_EQ(co_await timeout(s.handshake("example.test"), 20s), 0) << s.last_error();
        EXPECT_EQ(s.alpn(), "coil");
        EXPECT_EQ(co_await write_all(s, "hello\n"), 6);
        EXPECT_EQ(co_await timeout(read_exactly(s, 6), 20s), "olleh\n");
        if (version == "-tls1_3") {
            EXPECT_EQ(co_await s.update_keys(), 0);
            EXPECT_EQ(co_await write_all(s, "again\n"), 6);
            EXPECT_EQ(co_await timeout(read_exactly(s, 6), 20s), "niaga\n");
        }
        EXPECT_TRUE(s.session());
        EXPECT_EQ(co_await s.shutdown_write(), 0);
        server.kill(SIGTERM);
        co_await server.wait();
    };
    const pem_files files;
    coil::run(main(files, "-tls1_3"));
    coil::run(main(files, "-tls1_2"));
}

} // namespace
