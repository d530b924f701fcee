// An echo server over TLS:
//
//     tls_echo 8443 cert.pem key.pem
//     openssl s_client -connect localhost:8443 -CAfile cert.pem
//
// SIGHUP reloads the files for new connections. A client has ten seconds for its handshake. On
// SIGINT or SIGTERM the server stops accepting, and its clients have five seconds to finish.

#include "server.hpp"

#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> session(net::socket peer, tls::context ctx) {
    tls::stream s{std::move(peer), ctx};
    if (int r = co_await timeout(s.accept(), 10s); r < 0) {
        std::fprintf(stderr, "the handshake failed: %s\n",
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

task<> reload(const signal_set& hang_up, tls::context ctx, std::string certificate,
              std::string key) {
    while (co_await hang_up.next() == SIGHUP) {
        try {
            // On a thread of the pool, because reading the files blocks.
            co_await blocking([&] { ctx.use_certificate(certificate, key); });
            std::puts("reloaded the certificate");
        } catch (const std::exception& e) {
            std::fprintf(stderr, "cannot reload the certificate, the old one stays in use: %s\n",
                         e.what());
        }
        std::fflush(stdout);
    }
}

task<> serve(runtime& rt, std::uint16_t port, tls::context ctx, net::serve_options options,
             task<> reloading) {
    const auto handler = [ctx](net::socket peer) { return session(std::move(peer), ctx); };
    co_await when_any(net::serve(rt, port, handler, std::move(options)), std::move(reloading));
}

} // namespace

int main(int argc, char** argv) try {
    std::uint16_t port = 0;
    if (argc != 4 || !example::parse_number(argv[1], port)) {
        std::fprintf(stderr, "usage: tls_echo PORT CERTIFICATE-FILE KEY-FILE\n");
        return 2;
    }
    // Blocks SIGHUP. Must come before any thread is started, because threads inherit the mask.
    const signal_set hang_up{SIGHUP};
    const example::server_signals signals;
    const tls::context ctx = tls::context::server(argv[2], argv[3]);
    runtime rt;
    const auto meter = std::make_shared<net::serve_meter>();
    const net::serve_options options{
        .grace = 5s, .on_listening = example::say_where, .meter = meter};
    task<> server = serve(rt, port, ctx, options, reload(hang_up, ctx, argv[2], argv[3]));
    rt.block_on(example::run_until_stopped(std::move(server), signals,
                                           [meter] { return to_string(meter->metrics()); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "tls_echo: %s\n", e.what());
    return 1;
}
