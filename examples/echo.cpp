// An echo server: sends back what a client sends, until the client has sent everything.
//
//     echo 7007 &
//     netcat localhost 7007 < file | cmp - file
//
// It shows the two designs of a server on many cores. With --acceptors each, net::serve gives every
// context its own acceptor on the same port (SO_REUSEPORT): the kernel distributes the connections,
// and no connection ever moves to another thread. With --acceptors one, a single acceptor passes
// each connection to a context: this costs a message to another thread, but distributes a small
// number of connections evenly. --dispatch selects how the context is chosen: round robin, or the
// one with the fewest tasks. --stats prints what each context has done, when the server stops.

#include "server.hpp"

#include <coil/coil.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <getopt.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// The number of sessions that each context has begun. A context writes only its own count, which
/// has two cache lines to itself, because processors prefetch lines in pairs.
class session_counts {
public:
    explicit session_counts(runtime& contexts) : contexts_(contexts), counts_(contexts.size()) {}

    /// Called on a context.
    void count() noexcept {
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (&contexts_.context(i) == &this_context()) {
                ++counts_[i].sessions;
            }
        }
    }
    /// Called while the contexts are not running.
    [[nodiscard]] std::size_t of(std::size_t context) const { return counts_[context].sessions; }

private:
    struct alignas(128) tally {
        std::size_t sessions = 0;
    };
    runtime& contexts_;
    std::vector<tally> counts_;
};

/// Sending the answer and receiving the next data are one linked submission. Both can use the same
/// buffer: the recv starts only after everything has been sent.
task<> session(net::socket peer, session_counts& counts) {
    counts.count();
    char buf[16384];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send({buf, n}) && peer.recv(buf));
    }
}

/// Sessions run on the context that the dispatcher selects.
task<> deal_out(net::acceptor acceptor, runtime& contexts, session_counts& counts) {
    while (net::socket peer = co_await acceptor.accept()) {
        contexts.co_spawn(session(std::move(peer), counts));
    }
}

task<> stop_on_signal(const signal_set& signals, runtime& contexts) {
    co_await signals.next();
    contexts.stop();
}

struct arguments {
    std::uint16_t port = 0;
    unsigned contexts = 0; // 0: one per processor
    bool one_acceptor = false;
    bool by_load = false;
    bool stats = false;
};

/// Returns false if `word` is neither `no` nor `yes`. Otherwise sets `second` to `word == yes`.
bool parse_choice(std::string_view word, std::string_view no, std::string_view yes, bool& second) {
    second = word == yes;
    return second || word == no;
}

bool parse_option(int option, arguments& args) {
    switch (option) {
    case 'a':
        return parse_choice(optarg, "each", "one", args.one_acceptor);
    case 'c':
        return example::parse_number(optarg, args.contexts) && args.contexts > 0;
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
    if (optind != argc - 1 || !example::parse_number(argv[optind], args.port)) {
        return std::nullopt;
    }
    return args;
}

/// Every context accepts connections and serves them itself.
void run_acceptors(const arguments& args, runtime& contexts, session_counts& counts,
                   const example::server_signals& signals) {
    const auto handler = [&counts](net::socket peer) { return session(std::move(peer), counts); };
    const auto meter = std::make_shared<net::serve_meter>();
    const net::serve_options options{
        .grace = 0s, .on_listening = example::say_where, .meter = meter};
    contexts.block_on(example::run_until_stopped(net::serve(contexts, args.port, handler, options),
                                                 signals,
                                                 [meter] { return to_string(meter->metrics()); }));
}

/// One context accepts the connections for all contexts.
void run_one_acceptor(const arguments& args, runtime& contexts, session_counts& counts,
                      const example::server_signals& signals) {
    net::acceptor acceptor(args.port);
    example::say_where(acceptor.local_endpoint());
    contexts.context(0).co_spawn(deal_out(std::move(acceptor), contexts, counts));
    contexts.context(0).co_spawn(stop_on_signal(signals.stop, contexts));
    contexts.run();
}

void print_stats(const runtime& contexts, const session_counts& counts) {
    for (std::size_t i = 0; i < contexts.size(); ++i) {
        const context_metrics metrics = contexts.context(i).metrics();
        std::printf("context %zu: %zu sessions, %llu turns, %llu io_uring_enter calls\n", i,
                    counts.of(i), static_cast<unsigned long long>(metrics.turn_length.count()),
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
    example::use_all_descriptors();
    const example::server_signals signals; // before threads are started

    runtime_options options;
    options.contexts = args->contexts;
    if (args->by_load) {
        options.dispatcher = least_loaded();
    }
    runtime contexts(options);
    session_counts counts(contexts);
    if (args->one_acceptor) {
        run_one_acceptor(*args, contexts, counts, signals);
    } else {
        run_acceptors(*args, contexts, counts, signals);
    }
    if (args->stats) {
        print_stats(contexts, counts);
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "echo: %s\n", e.what());
    return 1;
}
