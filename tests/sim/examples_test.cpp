// The sessions of the servers in examples/, unmodified, in worlds with faults. Not their main(),
// which calls net::serve with a runtime: a world has none.

#include "server.hpp"
#include "sim/support.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <getopt.h>
#include <sys/resource.h>

// All headers that the examples include must be included above, outside of these namespaces.
namespace echo_example {
#define main program
#include "echo.cpp" // NOLINT(bugprone-suspicious-include)
#undef main
} // namespace echo_example
namespace chargen_example {
#define main program
#include "chargen.cpp" // NOLINT(bugprone-suspicious-include)
#undef main
} // namespace chargen_example

using namespace sim_test;

namespace {

constexpr unsigned echo_contexts = 3;

/// The counts of the running echo server.
echo_example::session_counts* echo_counts = nullptr;

/// One acceptor per context, all on one port; a failed one is replaced.
task<> echo_service() {
    for (;;) {
        try {
            net::acceptor acceptor(net::inet_address(7), {.backlog = 16, .reuse_port = true});
            while (net::socket peer = co_await acceptor.accept()) {
                co_spawn(echo_example::session(std::move(peer), *echo_counts));
            }
        } catch (const std::system_error&) {
            // for example, no descriptor is left
        }
        co_await coil::sleep_for(5ms);
    }
}

void boot_echo(sim::host& h) {
    for (unsigned i = 0; i < echo_contexts; ++i) {
        h.context(i).co_spawn(echo_service());
    }
}

struct echo_tally {
    unsigned whole = 0;
    unsigned broken = 0; // by an error reported to the client
    unsigned wrong = 0;  // the answer differs from the request
};

task<> send_text(net::socket& s, const std::string& text) {
    [[maybe_unused]] const int sent = co_await s.send_all(text); // the receiver detects a failure
}

task<> receive_text(net::socket& s, std::string& text, std::size_t size) {
    char buf[3000];
    while (text.size() < size) {
        const int n = co_await s.recv({buf, std::min(sizeof buf, size - text.size())});
        if (n <= 0) {
            break;
        }
        text.append(buf, static_cast<std::size_t>(n));
    }
}

task<> echo_client(net::inet_address server, std::size_t size, echo_tally& tally) try {
    net::socket s = net::socket::create_tcp();
    if (const int error = co_await s.connect(server); error < 0) {
        ++tally.broken;
        co_return;
    }
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = static_cast<char>(i * 13 + i / 256);
    }
    std::string back;
    // A client that only receives is not notified of a server's crash.
    co_await coil::timeout(coil::when_all(send_text(s, text), receive_text(s, back, size)), 1min);
    if (std::string_view(text).substr(0, back.size()) != back) {
        ++tally.wrong;
    } else {
        ++(back.size() == size ? tally.whole : tally.broken);
    }
} catch (const std::system_error&) {
    ++tally.broken;
}

struct echo_run {
    echo_tally tally;
    std::uint64_t hash = 0;
};

echo_run play_echo(std::uint64_t seed, const sim::fault_plan& faults, unsigned clients,
                   bool disasters, std::size_t most = 20'000) {
    coil::runtime unused(1); // the counts refer to one, which a world cannot create
    echo_example::session_counts counts(unused);
    echo_counts = &counts;
    sim::world_options options;
    options.faults = faults;
    options.link.loss = 10;
    options.stream_timeout = 20s;
    options.connect_timeout = 20s;
    sim::world w(seed, options);
    echo_run run;
    sim::host& server = w.host("server");
    server.on_start(boot_echo);
    w.run(); // until they listen
    for (unsigned i = 0; i < clients; ++i) {
        sim::host& client = w.host("client " + std::to_string(i % 3));
        const std::size_t size = 1 + w.random().below(most);
        w.after(std::chrono::microseconds(w.random().below(2000 * clients)),
                [&client, &server, &run, size] {
                    client.co_spawn(echo_client(server.address(7), size, run.tally));
                });
    }
    if (disasters) {
        sim::host& client = w.host("client 0");
        w.after(20ms, [&] { w.partition(server, client); });
        w.after(60ms, [&] { server.crash(); });
        w.after(100ms, [&] { server.restart(); });
        w.after(2s, [&] { w.heal(server, client); });
    }
    const bool over = w.run_until(
        [&] { return run.tally.whole + run.tally.broken + run.tally.wrong == clients; }, 10min);
    EXPECT_TRUE(over) << "SEED=" << seed << ": a client waits for ever";
    EXPECT_EQ(run.tally.wrong, 0U) << "SEED=" << seed;
    run.hash = w.trace_hash();
    return run;
}

TEST(SimExamples, EchoAnswersEveryClientInAnOrdinaryNetwork) {
    EXPECT_TRUE(sim::for_each_seed(10, [](std::uint64_t seed) {
        sim::fault_plan faults = sim::fault_plan::timing();
        faults.short_transfer = 100;
        const echo_run run = play_echo(seed, faults, 60, false);
        EXPECT_EQ(run.tally.whole, 60U) << "SEED=" << seed;
        return !testing::Test::HasFailure();
    }));
}

/// One acceptor handles all steps of a handshake, however many acceptors share the port. Otherwise
/// an acceptor would count connections that never arrive, until its backlog is full.
TEST(SimExamples, AcceptorsThatShareAPortTakeConnectionsForEver) {
    const echo_run run = play_echo(1, {}, 2000, false, 100);
    EXPECT_EQ(run.tally.whole, 2000U);
}

TEST(SimExamples, NoClientWaitsForAnEchoForEver) {
    unsigned whole = 0;
    unsigned broken = 0;
    EXPECT_TRUE(sim::for_each_seed(
        static_cast<std::uint64_t>(coil_test::rounds(40, 5000)), [&](std::uint64_t seed) {
            const echo_run run = play_echo(seed, sim::fault_plan::everything(), 30, true);
            whole += run.tally.whole;
            broken += run.tally.broken;
            return !testing::Test::HasFailure();
        }));
    EXPECT_GT(whole, 0U);
    EXPECT_GT(broken, 0U);
}

/// Earlier worlds in the process have no effect.
TEST(SimExamples, ASeedIsTheSameRunInAnyOrder) {
    std::vector<std::uint64_t> forwards;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        forwards.push_back(play_echo(seed, sim::fault_plan::everything(), 20, true).hash);
    }
    for (std::uint64_t seed = 8; seed >= 1; --seed) {
        EXPECT_EQ(play_echo(seed, sim::fault_plan::everything(), 20, true).hash, forwards[seed - 1])
            << "SEED=" << seed;
    }
}

task<> generate() {
    net::acceptor acceptor{net::inet_address(19)};
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(chargen_example::session(std::move(peer)));
    }
}

task<std::string> read_some(net::inet_address server, std::size_t size) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(server);
    EXPECT_EQ(connected, 0);
    std::string text;
    co_await receive_text(s, text, size);
    co_return text;
}

TEST(SimExamples, ChargenSendsItsPatternUntilTheClientHasEnough) {
    const std::string& pattern = chargen_example::pattern();
    EXPECT_TRUE(sim::for_each_seed(20, [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        options.faults.short_transfer = 200;
        sim::world w(seed, options);
        sim::host& server = w.host("server");
        server.co_spawn(generate());
        w.run(); // until it listens
        const std::string text =
            run_in(w, w.host("client"), read_some(server.address(19), pattern.size() + 1000));
        EXPECT_EQ(text.size(), pattern.size() + 1000);
        EXPECT_TRUE(text == (pattern + pattern).substr(0, text.size())) << "SEED=" << seed;
        // The session has noticed the end and closed its socket.
        EXPECT_EQ(server.open_descriptors().size(), 1U);
        return !testing::Test::HasFailure();
    }));
}

} // namespace
