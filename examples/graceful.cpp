// An echo server with a graceful shutdown: on SIGINT or SIGTERM it stops accepting, gives existing
// connections some time to finish, and sends a goodbye to the remaining ones.
//
//     graceful 7007 --grace 2.5
//
// It shows net::serve, which does this for all connections. A stop request ends accepting. After
// the grace period the sessions are cancelled; each may still send a goodbye inside a shield. At
// the hard deadline the remaining sessions are destroyed. When net::serve returns, no session is
// left.

#include <coil/coil.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <getopt.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> session(net::socket peer) {
    char buf[4096];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send({buf, n}) && peer.recv(buf));
    }
    if (n == -ECANCELED) {
        // this task has been cancelled already
        co_await shield(timeout(peer.send("goodbye\n"), 1s));
    }
}

void say_where(const net::endpoint& where) {
    std::printf("listening on %s\n", where.to_string().c_str());
    std::fflush(stdout);
}

/// Ends after the first signal.
task<> wait_for(const signal_set& signals, const net::serve_meter& meter) {
    co_await signals.next();
    std::printf("stopping: %llu sessions\n", static_cast<unsigned long long>(meter.metrics().open));
    std::fflush(stdout);
}

task<> serve(runtime& rt, std::uint16_t port, const signal_set& signals,
             std::chrono::milliseconds grace) {
    const auto meter = std::make_shared<net::serve_meter>();
    const net::serve_options options{
        .grace = grace, .hard_deadline = 2s, .on_listening = say_where, .meter = meter};
    // After the signal, when_any asks the server to stop, and waits until it has ended.
    co_await when_any(net::serve(rt, port, session, options), wait_for(signals, *meter));
    std::puts(meter->metrics().grace_ended == 0 ? "all have ended" : "some were ended");
}

struct arguments {
    std::uint16_t port = 0;
    double grace = 5;
};

template <class Number>
bool parse_number(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc() && number >= 0;
}

std::optional<arguments> parse(int argc, char** argv) {
    constexpr ::option known[] = {{"grace", required_argument, nullptr, 'g'}, {}};
    arguments args;
    opterr = 0; // the usage text covers it
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (option != 'g' || !parse_number(optarg, args.grace)) {
            return std::nullopt;
        }
    }
    if (optind != argc - 1 || !parse_number(argv[optind], args.port)) {
        return std::nullopt;
    }
    return args;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: graceful PORT [--grace SECONDS]\n");
        return 2;
    }
    const signal_set signals{SIGINT, SIGTERM}; // before the runtime starts threads
    runtime rt(1);
    rt.block_on(serve(
        rt, args->port, signals,
        std::chrono::milliseconds(static_cast<std::int64_t>(std::min(args->grace, 1e9) * 1000))));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "graceful: %s\n", e.what());
    return 1;
}
