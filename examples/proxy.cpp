// proxy LISTEN HOST PORT: forwards every connection to another server, both ways, with half-close.
//
//     proxy 127.0.0.1:8080 example.org 80
//     proxy unix:/run/front localhost 5432

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
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

task<> serve(net::endpoint where, target to) {
    net::acceptor acceptor(where);
    std::printf("listening on %s\n", acceptor.local_endpoint().to_string().c_str());
    std::fflush(stdout);
    scope sessions;
    while (net::socket client = co_await acceptor.accept()) {
        sessions.spawn(forward(std::move(client), to));
    }
}

std::optional<std::uint16_t> parse_port(const char* text) {
    std::uint16_t port = 0;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, port);
    return error == std::errc() && rest == end ? std::optional(port) : std::nullopt;
}

} // namespace

int main(int argc, char** argv) try {
    const auto where = argc == 4 ? net::endpoint::parse(argv[1]) : std::nullopt;
    const auto port = argc == 4 ? parse_port(argv[3]) : std::nullopt;
    if (!where || !port) {
        std::fprintf(stderr, "usage: proxy ADDRESS:PORT|unix:PATH HOST PORT\n");
        return 2;
    }
    coil::run(serve(*where, {argv[2], *port}));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "proxy: %s\n", e.what());
    return 1;
}
