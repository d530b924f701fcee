// proxy LISTEN HOST PORT: forwards every connection to another server, in both directions. When one
// side ends its stream, the other direction continues (half-close).
//
//     proxy 127.0.0.1:8080 example.org 80
//     proxy unix:/run/front localhost 5432
//     proxy --tls-cert cert.pem --tls-key key.pem 0.0.0.0:443 localhost 80
//
// With --tls-cert and --tls-key it terminates TLS: the connections of clients are encrypted, those
// to the server are not. For this the examples must be built with OpenSSL (EXAMPLE_TLS).
//
// On SIGINT or SIGTERM it stops accepting, and connected clients have five seconds to finish.

#include "server.hpp"

#include <coil/coil.hpp>
#if EXAMPLE_TLS
#include <coil/tls.hpp>
#endif

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct target {
    std::string host;
    std::uint16_t port = 0;
};

struct arguments {
    std::optional<net::endpoint> where;
    target to;
    std::string certificate; // file names; empty: no TLS
    std::string key;
};

template <byte_stream Front>
task<> forward(Front& client, target to) {
    net::socket server = co_await net::connect(to.host, to.port, 10s);
    const duplex_counts moved = co_await duplex(client, server);
    std::printf("%llu bytes there, %llu back\n", static_cast<unsigned long long>(moved.a_to_b),
                static_cast<unsigned long long>(moved.b_to_a));
    std::fflush(stdout);
}

/// Prints why a connection has failed.
task<> report(task<> connection) {
    try {
        co_await std::move(connection);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "proxy: %s\n", e.what());
    }
}

task<> forward_plain(net::socket client, target to) { co_await forward(client, std::move(to)); }

using handler = std::function<task<>(net::socket)>;

handler plain_handler(const target& to) {
    return [to](net::socket client) { return report(forward_plain(std::move(client), to)); };
}

#if EXAMPLE_TLS

task<> forward_tls(net::socket client, target to, tls::context context) {
    tls::stream front{std::move(client), context};
    if (const int error = co_await timeout(front.accept(), 10s); error < 0) {
        const std::string& reason = front.last_error();
        throw std::runtime_error("no handshake: " +
                                 (reason.empty() ? io_result(error).error().message() : reason));
    }
    co_await forward(front, std::move(to));
}

handler tls_handler(const target& to, const std::string& certificate, const std::string& key) {
    const tls::context context = tls::context::server(certificate, key);
    return [to, context](net::socket client) {
        return report(forward_tls(std::move(client), to, context));
    };
}

#else

handler tls_handler(const target&, const std::string&, const std::string&) {
    throw std::runtime_error("this program was built without OpenSSL 3, which TLS needs; install "
                             "the package libssl-dev and build it again");
}

#endif

std::optional<arguments> parse(int argc, char** argv) {
    arguments args;
    std::vector<std::string_view> words;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if ((word == "--tls-cert" || word == "--tls-key") && i + 1 < argc) {
            (word == "--tls-cert" ? args.certificate : args.key) = argv[++i];
        } else {
            words.push_back(word);
        }
    }
    if (words.size() != 3 || args.certificate.empty() != args.key.empty()) {
        return std::nullopt;
    }
    args.where = net::endpoint::parse(words[0]);
    args.to.host = words[1];
    if (!args.where || !example::parse_number(words[2], args.to.port)) {
        return std::nullopt;
    }
    return args;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: proxy [--tls-cert FILE --tls-key FILE] "
                             "ADDRESS:PORT|unix:PATH HOST PORT\n");
        return 2;
    }
    const handler session = args->key.empty() ? plain_handler(args->to)
                                              : tls_handler(args->to, args->certificate, args->key);
    const example::server_signals signals; // before threads are started
    runtime rt;
    const auto meter = std::make_shared<net::serve_meter>();
    const net::serve_options options{.max_connections =
                                         example::connections_for(2, 50), // two sockets each
                                     .grace = 5s,
                                     .on_listening = example::say_where,
                                     .meter = meter};
    rt.block_on(example::run_until_stopped(net::serve(rt, *args->where, session, options), signals,
                                           [meter] { return to_string(meter->metrics()); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "proxy: %s\n", e.what());
    return 1;
}
