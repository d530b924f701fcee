// Sends every byte back, encrypted:
//
//     tls_echo 8443 cert.pem key.pem
//     openssl s_client -connect localhost:8443 -CAfile cert.pem
//
// SIGHUP loads the files again, for new connections. A client has ten seconds for its handshake.

#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> session(net::socket peer, tls::context ctx) {
    tls::stream s{std::move(peer), ctx};
    if (int r = co_await timeout(s.accept(), 10s); r < 0) {
        std::fprintf(stderr, "no handshake: %s\n",
                     s.last_error().empty() ? io_result(r).error().message().c_str()
                                            : s.last_error().c_str());
        co_return;
    }
    try {
        co_await copy(s, s);
        (void)co_await timeout(s.shutdown(), 10s);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "a connection failed: %s\n", e.what());
    }
}

task<> reload(signal_set& hang_up, tls::context ctx, std::string certificate, std::string key) {
    while (co_await hang_up.next() == SIGHUP) {
        try {
            // Reading files blocks.
            co_await blocking([&] { ctx.use_certificate(certificate, key); });
            std::puts("loaded the certificate again");
        } catch (const std::exception& e) {
            std::fprintf(stderr, "the old certificate stays: %s\n", e.what());
        }
        std::fflush(stdout);
    }
}

task<> serve(signal_set& hang_up, std::uint16_t port, std::string certificate, std::string key) {
    tls::context ctx = tls::context::server(certificate, key);
    net::acceptor acceptor{net::inet_address{port}};
    std::printf("listening on %s\n", acceptor.local_endpoint().to_string().c_str());
    std::fflush(stdout);
    co_spawn(reload(hang_up, ctx, certificate, key));
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer), ctx));
    }
}

} // namespace

int main(int argc, char** argv) try {
    char* end = nullptr;
    const unsigned long port = argc == 4 ? std::strtoul(argv[1], &end, 10) : 65536;
    if (port > 65535 || end == argv[1] || *end != '\0') {
        std::fprintf(stderr, "usage: tls_echo PORT CERTIFICATE-FILE KEY-FILE\n");
        return 2;
    }
    signal_set hang_up{SIGHUP};
    coil::run(serve(hang_up, static_cast<std::uint16_t>(port), argv[2], argv[3]));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "tls_echo: %s\n", e.what());
    return 1;
}
