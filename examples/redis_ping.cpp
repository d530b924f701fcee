// A ping server: answers "+OK\r\n" to whatever it receives, which is what redis-benchmark's ping
// tests expect.
//
//     redis_ping 6379 &
//     redis-benchmark -p 6379 -t ping_mbulk -c 50 -n 1000000
//
// It shows the shape of every coil server: an acceptor, a detached coroutine per connection, and a
// buffer in that coroutine. Answering and waiting for the next request are one linked submission.
// --idle chooses what the thread does when no request is there, --stats tells at the end how few
// system calls that took.

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <getopt.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

std::uint64_t answered = 0;

task<> session(net::socket peer) {
    char buf[1024];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        ++answered;
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

task<> serve(net::acceptor acceptor) {
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

/// Ends the program's run on SIGINT and SIGTERM, which arrive as data on a descriptor.
task<> stop_on_signal() {
    ::sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::sigaddset(&set, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    const int signals = ::signalfd(-1, &set, SFD_CLOEXEC);
    ::signalfd_siginfo which;
    co_await io::read(signals, {&which, sizeof which});
    this_context().stop();
}

void allow_many_descriptors() {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct arguments {
    std::uint16_t port = 0;
    idle_policy idle = io_context_options().idle;
    bool stats = false;
};

std::optional<idle_policy> parse_idle(std::string_view name) {
    if (name == "park") {
        return idle_policy::park();
    }
    if (name == "spin") {
        return idle_policy::spin(50us);
    }
    if (name == "batch") {
        return idle_policy::batch(16, 20us);
    }
    return std::nullopt;
}

std::optional<arguments> parse(int argc, char** argv) {
    constexpr ::option known[] = {
        {"idle", required_argument, nullptr, 'i'}, {"stats", no_argument, nullptr, 's'}, {}};
    arguments args;
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (option == 's') {
            args.stats = true;
        } else if (const auto idle = option == 'i' ? parse_idle(optarg) : std::nullopt) {
            args.idle = *idle;
        } else {
            return std::nullopt;
        }
    }
    if (optind != argc - 1) {
        return std::nullopt;
    }
    const char* const word = argv[optind];
    const char* const end = word + std::strlen(word);
    const auto [rest, error] = std::from_chars(word, end, args.port);
    return rest == end && error == std::errc() ? std::optional(args) : std::nullopt;
}

void print_stats(const context_metrics& metrics) {
    std::printf(
        "%llu requests, %llu io_uring_enter calls (%.4f per request)\n",
        static_cast<unsigned long long>(answered), static_cast<unsigned long long>(metrics.enters),
        answered == 0 ? 0.0 : static_cast<double>(metrics.enters) / static_cast<double>(answered));
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: redis_ping PORT [--idle park|spin|batch] [--stats]\n");
        return 2;
    }
    allow_many_descriptors();

    io_context_options options;
    options.idle = args->idle;
    io_context context(options);
    net::acceptor acceptor{net::inet_address(args->port)};
    std::printf("listening on %s\n", acceptor.local_address().to_string().c_str());
    std::fflush(stdout);

    context.co_spawn(serve(std::move(acceptor)));
    context.co_spawn(stop_on_signal());
    context.run();
    if (args->stats) {
        print_stats(context.metrics());
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "redis_ping: %s\n", e.what());
    return 1;
}
