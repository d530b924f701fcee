// An echo server with a graceful shutdown: on SIGINT or SIGTERM it stops accepting, gives existing
// connections some time to finish, and says goodbye to the remaining ones.
//
//     graceful 7007 --grace 2.5
//
// It shows how the parts of structured concurrency fit together. The sessions are children of a
// scope. Accepting is raced against a signal. Joining the scope has a limit; when that expires, the
// sessions are cancelled, and each may still send its last words inside a shield. When serve()
// returns, nothing is left running.

#include <coil/coil.hpp>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
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

/// Owns the acceptor, so the port is closed when this task ends.
task<> accept_all(net::acceptor acceptor, scope& sessions) {
    while (true) {
        // suspends on transient errors such as EMFILE
        net::socket peer = co_await acceptor.accept();
        if (!peer) {
            if (peer.error() == std::errc::operation_canceled) {
                co_return;
            }
            throw std::system_error(peer.error(), "accept");
        }
        sessions.spawn(session(std::move(peer)));
    }
}

task<> serve(net::acceptor acceptor, const signal_set& signals,
             std::chrono::duration<double> grace) {
    scope sessions;
    co_await when_any(accept_all(std::move(acceptor), sessions), signals.next());

    const std::size_t left = sessions.size();
    std::printf("stopping: %zu sessions\n", left);
    std::fflush(stdout);
    try {
        co_await timeout(sessions.join(), grace);
        std::printf("all have ended\n");
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw;
        }
        std::printf("some were ended\n");
    }
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
    const signal_set signals{SIGINT, SIGTERM};
    net::acceptor acceptor(net::inet_address(args->port));
    std::printf("listening on %s\n", acceptor.local_address().to_string().c_str());
    std::fflush(stdout);
    coil::run(serve(std::move(acceptor), signals, std::chrono::duration<double>(args->grace)));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "graceful: %s\n", e.what());
    return 1;
}
