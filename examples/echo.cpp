// An echo server: sends every client what it receives, until the client has sent everything.
//
//     echo 7007 &
//     netcat localhost 7007 < file | cmp - file
//
// It shows the two designs of a server on many cores. With --acceptors each, every context has its
// own acceptor on the same port (SO_REUSEPORT): the kernel distributes the connections, and none of
// them ever moves to another thread. With --acceptors one, a single acceptor passes each connection
// to a context: that costs a message to another thread, but distributes a small number of
// connections evenly. --dispatch selects the context: round robin, or the one with the fewest
// tasks. --stats prints at the end what each context has done.

#include <coil/coil.hpp>

#include <charconv>
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
#include <sys/resource.h>

using namespace coil;

namespace {

/// Sending the answer and receiving the next data are one linked submission. Both can use the same
/// buffer: the recv starts only when everything was sent.
task<> session(net::socket peer) {
    char buf[16384];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send({buf, n}) && peer.recv(buf));
    }
}

/// Sessions stay on the context that accepted them.
task<> serve_here(net::acceptor acceptor) {
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

/// Sessions run on the context that the dispatcher selects.
task<> deal_out(net::acceptor acceptor, runtime& contexts) {
    while (net::socket peer = co_await acceptor.accept()) {
        contexts.co_spawn(session(std::move(peer)));
    }
}

task<> stop_on_signal(const signal_set& signals, runtime& contexts) {
    co_await signals.next();
    contexts.stop();
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
    unsigned contexts = 0; // 0: one per processor
    bool one_acceptor = false;
    bool by_load = false;
    bool stats = false;
};

template <class Number>
bool parse_number(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc();
}

/// Returns whether `word` is one of the two; sets `second` to whether it is `yes`.
bool parse_choice(std::string_view word, std::string_view no, std::string_view yes, bool& second) {
    second = word == yes;
    return second || word == no;
}

bool parse_option(int option, arguments& args) {
    switch (option) {
    case 'a':
        return parse_choice(optarg, "each", "one", args.one_acceptor);
    case 'c':
        return parse_number(optarg, args.contexts) && args.contexts > 0;
    case 'd':
        return parse_choice(optarg, "round-robin", "least-loaded", args.by_load);
    case 's':
        return args.stats = true;
    default:
        return false;
    }
}

std::optional<arguments> parse(int argc, char** argv) {
    constexpr ::option known[] = {{"acceptors", required_argument, nullptr, 'a'},
                                  {"contexts", required_argument, nullptr, 'c'},
                                  {"dispatch", required_argument, nullptr, 'd'},
                                  {"stats", no_argument, nullptr, 's'},
                                  {}};
    arguments args;
    opterr = 0; // the usage text covers it
    for (int option; (option = ::getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        if (!parse_option(option, args)) {
            return std::nullopt;
        }
    }
    if (optind != argc - 1 || !parse_number(argv[optind], args.port)) {
        return std::nullopt;
    }
    return args;
}

/// The address that clients connect to.
net::inet_address start_acceptors(const arguments& args, runtime& contexts) {
    net::inet_address address(args.port);
    if (args.one_acceptor) {
        net::acceptor acceptor(address);
        address = acceptor.local_address();
        contexts.context(0).co_spawn(deal_out(std::move(acceptor), contexts));
        return address;
    }
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        net::acceptor acceptor(address, {.reuse_port = contexts.size() > 1});
        address = acceptor.local_address(); // the first acceptor chooses the port if it is 0
        contexts.context(i).co_spawn(serve_here(std::move(acceptor)));
    }
    return address;
}

void print_stats(const runtime& contexts) {
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        const context_metrics metrics = contexts.context(i).metrics();
        std::printf("context %zu: %llu tasks, %llu turns, %llu io_uring_enter calls\n", i,
                    static_cast<unsigned long long>(metrics.tasks_started),
                    static_cast<unsigned long long>(metrics.turn_length.count()),
                    static_cast<unsigned long long>(metrics.enters));
    }
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<arguments> args = parse(argc, argv);
    if (!args) {
        std::fprintf(stderr, "usage: echo PORT [--contexts N] [--acceptors each|one] "
                             "[--dispatch round-robin|least-loaded] [--stats]\n");
        return 2;
    }
    allow_many_descriptors();
    const signal_set signals{SIGINT, SIGTERM}; // before threads are started

    runtime_options options;
    options.contexts = args->contexts;
    if (args->by_load) {
        options.dispatcher = least_loaded();
    }
    runtime contexts(options);
    const net::inet_address address = start_acceptors(*args, contexts);
    contexts.context(0).co_spawn(stop_on_signal(signals, contexts));
    std::printf("listening on %s\n", address.to_string().c_str());
    std::fflush(stdout);

    contexts.run();
    if (args->stats) {
        print_stats(contexts);
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "echo: %s\n", e.what());
    return 1;
}
