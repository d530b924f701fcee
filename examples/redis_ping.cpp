// A ping server: answers "+OK\r\n" to everything it receives, as redis-benchmark's ping tests
// expect.
//
//     redis_ping 6379 &
//     redis-benchmark -p 6379 -t ping_mbulk -c 50 -n 1000000
//
// It shows the structure of a small coil server: an acceptor, a detached coroutine per connection,
// and a buffer in that coroutine. Sending the answer and receiving the next request are one linked
// submission. --idle selects what the thread does when there is no request; --stats prints the
// number of system calls at the end.
//
//     redis_ping 6379 --contexts 4 --stats
//
// With several contexts, each runs on its own thread. One context accepts and passes the
// connections to all contexts in turn, so that each context serves the same number; after that the
// threads share nothing. (With an acceptor per context, as in the echo example, the kernel
// distributes connections by a hash: some threads get 50 % more connections than others, and their
// clients wait longer.) The other servers use net::serve(), which has an acceptor per context, and
// limits and a graceful stop for each connection. This program measures how fast a server is
// without them.

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <getopt.h>
#include <sys/resource.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// The counters of one context. They have two cache lines to themselves, because processors
/// prefetch lines in pairs.
struct alignas(128) tally {
    std::uint64_t answered = 0;
};

task<> session(net::socket peer, tally& counted) {
    char buf[1024];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        ++counted.answered;
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

task<> serve(net::acceptor acceptor, tally& counted) {
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer), counted));
    }
}

task<> serve(net::acceptor acceptor, runtime& contexts, std::vector<tally>& counted) {
    std::size_t next = 0;
    while (net::socket peer = co_await acceptor.accept()) {
        contexts.context(next).co_spawn(session(std::move(peer), counted[next]));
        next = (next + 1) % contexts.size();
    }
}

/// Stops the program after a signal. Stopping one context of a runtime stops all of its contexts.
task<> stop_on_signal(const signal_set& signals) {
    co_await signals.next();
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
    unsigned contexts = 1;
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

template <class Number>
bool parse_number(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc();
}

std::optional<arguments> parse(int argc, char** argv) {
    constexpr ::option known[] = {{"contexts", required_argument, nullptr, 'c'},
                                  {"idle", required_argument, nullptr, 'i'},
                                  {"stats", no_argument, nullptr, 's'},
                                  {}};
    arguments args;
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (option == 's') {
            args.stats = true;
        } else if (option == 'c' && parse_number(optarg, args.contexts) && args.contexts > 0) {
            continue;
        } else if (const auto idle = option == 'i' ? parse_idle(optarg) : std::nullopt) {
            args.idle = *idle;
        } else {
            return std::nullopt;
        }
    }
    if (optind != argc - 1 || !parse_number(argv[optind], args.port)) {
        return std::nullopt;
    }
    return args;
}

void say_where(const net::inet_address& address) {
    std::printf("listening on %s\n", address.to_string().c_str());
    std::fflush(stdout);
}

void print_stats(const char* whose, std::uint64_t requests, std::uint64_t enters) {
    std::printf("%s%llu requests, %llu io_uring_enter calls (%.4f per request)\n", whose,
                static_cast<unsigned long long>(requests), static_cast<unsigned long long>(enters),
                requests == 0 ? 0.0 : static_cast<double>(enters) / static_cast<double>(requests));
}

/// Runs everything on this thread.
void run_one(const arguments& args, const io_context_options& options, const signal_set& signals) {
    tally counted;
    io_context context(options);
    net::acceptor acceptor{net::inet_address(args.port)};
    say_where(acceptor.local_address());

    context.co_spawn(serve(std::move(acceptor), counted));
    context.co_spawn(stop_on_signal(signals));
    context.run();
    if (args.stats) {
        print_stats("", counted.answered, context.metrics().enters);
    }
}

void run_many(const arguments& args, const io_context_options& options, const signal_set& signals) {
    std::vector<tally> counted(args.contexts);
    runtime_options all;
    all.contexts = args.contexts;
    all.context = options;
    runtime contexts(all);
    net::acceptor acceptor{net::inet_address(args.port)};
    say_where(acceptor.local_address());
    contexts.context(0).co_spawn(serve(std::move(acceptor), contexts, counted));
    contexts.context(0).co_spawn(stop_on_signal(signals));
    contexts.run();
    if (!args.stats) {
        return;
    }
    std::uint64_t answered = 0;
    std::uint64_t enters = 0;
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        answered += counted[i].answered;
        enters += contexts.context(i).metrics().enters;
    }
    print_stats("", answered, enters);
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        const std::string whose = "context " + std::to_string(i) + ": ";
        print_stats(whose.c_str(), counted[i].answered, contexts.context(i).metrics().enters);
    }
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: redis_ping PORT [--contexts N] [--idle park|spin|batch] "
                             "[--stats]\n");
        return 2;
    }
    allow_many_descriptors();
    const signal_set signals{SIGINT, SIGTERM}; // before threads are started

    io_context_options options;
    options.idle = args->idle;
    if (args->contexts == 1) {
        run_one(*args, options, signals);
    } else {
        run_many(*args, options, signals);
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "redis_ping: %s\n", e.what());
    return 1;
}
