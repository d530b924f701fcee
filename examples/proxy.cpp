// proxy LISTEN HOST PORT: forwards every connection to another server, both ways, with half-close.
//
//     proxy 127.0.0.1:8080 example.org 80
//     proxy unix:/run/front localhost 5432
//
// On SIGINT or SIGTERM it stops accepting; connected clients have five seconds to finish.

#include "server.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct target {
    std::string host;
    std::uint16_t port = 0;
};

task<> forward(net::socket client, target to) {
    try {
        net::socket server = co_await net::connect(to.host, to.port, 10s);
        const duplex_counts moved = co_await duplex(client, server);
        std::printf("%llu bytes there, %llu back\n", static_cast<unsigned long long>(moved.a_to_b),
                    static_cast<unsigned long long>(moved.b_to_a));
    } catch (const std::system_error& e) {
        std::fprintf(stderr, "proxy: %s\n", e.what());
    }
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) try {
    const auto where = argc == 4 ? net::endpoint::parse(argv[1]) : std::nullopt;
    target to{argc == 4 ? argv[2] : "", 0};
    if (!where || !example::parse_number(argv[3], to.port)) {
        std::fprintf(stderr, "usage: proxy ADDRESS:PORT|unix:PATH HOST PORT\n");
        return 2;
    }
    const example::server_signals signals; // before threads are started
    runtime rt;
    const auto meter = std::make_shared<net::serve_meter>();
    const net::serve_options options{.max_connections =
                                         example::connections_for(2, 50), // a client has a server
                                     .grace = 5s,
                                     .on_listening = example::say_where,
                                     .meter = meter};
    const auto session = [to](net::socket client) { return forward(std::move(client), to); };
    rt.block_on(example::run_until_stopped(net::serve(rt, *where, session, options), signals,
                                           [meter] { return to_string(meter->metrics()); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "proxy: %s\n", e.what());
    return 1;
}
