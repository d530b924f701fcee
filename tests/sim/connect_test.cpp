// net::connect in a world: every order of answers, deadlines, cancellation, and error messages.

#include "sim/support.hpp"

#include <coil/net/connect.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

using namespace sim_test;

namespace {

/// What an address does with a connection.
enum class answer : unsigned char { refuses, silent, fast, slow, very_slow };

constexpr auto never = std::chrono::nanoseconds::max();
constexpr std::uint16_t port = 80;

/// One-way latency: a connection takes twice as long.
std::chrono::nanoseconds latency_of(answer a) {
    switch (a) {
    case answer::slow:
        return 150ms;
    case answer::very_slow:
        return 350ms;
    default:
        return 1ms;
    }
}

task<> accept_all(net::endpoint where) {
    net::acceptor acceptor{where};
    std::vector<net::socket> kept;
    while (net::socket peer = co_await acceptor.accept()) {
        kept.push_back(std::move(peer));
    }
}

/// A client and one host per answer.
struct network {
    explicit network(const std::vector<answer>& answers, std::uint64_t seed = 1,
                     sim::world_options options = {})
        : w(seed, options) {
        for (std::size_t i = 0; i < answers.size(); ++i) {
            sim::host& h = w.host("server" + std::to_string(i));
            sim::link_options link;
            link.latency = latency_of(answers[i]);
            link.jitter = 0ns;
            w.link(client, h, link);
            if (answers[i] == answer::silent) {
                h.crash();
            } else if (answers[i] != answer::refuses) {
                h.co_spawn(accept_all(net::inet_address(port)));
            }
            addresses.push_back(h.address(port));
        }
        w.run();
    }

    sim::world w;
    sim::host& client = w.host("client");
    std::vector<net::inet_address> addresses;
};

/// The outcome that RFC 8305 prescribes: which address wins, and when.
struct outcome {
    std::optional<std::size_t> winner;
    std::chrono::nanoseconds time = never;
};

outcome expected(const std::vector<answer>& answers) {
    outcome best;
    std::chrono::nanoseconds start = 0ns;
    for (std::size_t i = 0; i < answers.size() && start < best.time; ++i) {
        const auto round_trip = 2 * latency_of(answers[i]);
        if (answers[i] == answer::refuses) {
            start += round_trip;
            continue;
        }
        if (answers[i] != answer::silent && start + round_trip < best.time) {
            best = {i, start + round_trip};
        }
        start += net::detail::connection_attempt_delay;
    }
    return best;
}

task<net::endpoint> connect_and_tell(std::vector<net::inet_address> addresses) {
    net::socket s = co_await net::detail::connect_to_any("x port 80", std::move(addresses),
                                                         net::detail::no_deadline);
    const net::endpoint peer = s.peer_endpoint();
    co_return peer;
}

TEST(SimConnect, EveryOrderOfAnswers) {
    std::vector<answer> answers{answer::refuses, answer::silent, answer::slow, answer::very_slow,
                                answer::fast};
    do {
        network n(answers);
        const outcome right = expected(answers);
        const auto begin = n.w.now();
        auto handle = n.client.spawn(connect_and_tell(n.addresses));
        ASSERT_TRUE(n.w.run_until([&] { return handle.done(); }, 60s));
        ASSERT_TRUE(right.winner);
        EXPECT_EQ(handle.get(), net::endpoint(n.addresses[*right.winner]));
        const auto took = n.w.now() - begin;
        EXPECT_GE(took, right.time);
        EXPECT_LE(took, right.time + 5ms);
        EXPECT_TRUE(n.client.open_descriptors().empty()); // the losers are closed
        if (testing::Test::HasFailure()) {
            FAIL() << n.w.trace();
        }
    } while (std::ranges::next_permutation(answers).found);
}

TEST(SimConnect, EveryOrderUnderFaultsThatARuntimeHides) {
    sim::for_each_seed(20, [](std::uint64_t seed) {
        std::vector<answer> answers{answer::refuses, answer::silent, answer::fast};
        sim::world shuffler{seed};
        for (std::size_t i = answers.size(); i > 1; --i) {
            std::swap(answers[i - 1], answers[shuffler.random().below(i)]);
        }
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        network n(answers, seed, options);
        auto handle = n.client.spawn(connect_and_tell(n.addresses));
        ASSERT_TRUE(n.w.run_until([&] { return handle.done(); }, 60s));
        EXPECT_EQ(handle.get(), net::endpoint(n.addresses[*expected(answers).winner]));
        EXPECT_TRUE(n.client.open_descriptors().empty());
    });
}

task<std::string> failure_of(task<net::socket> connecting, std::error_code& code) {
    try {
        const net::socket s = co_await std::move(connecting);
        co_return "connected";
    } catch (const std::system_error& e) {
        code = e.code();
        co_return e.what();
    }
}

TEST(SimConnect, WithoutAnyListener_TheErrorNamesEachAttempt) {
    network n({answer::refuses, answer::refuses});
    std::error_code code;
    const std::string text = run_in(
        n.w, n.client,
        failure_of(net::detail::connect_to_any("x port 80", n.addresses, net::detail::no_deadline),
                   code));
    EXPECT_EQ(code, std::errc::connection_refused);
    EXPECT_NE(text.find("cannot connect to x port 80: "), std::string::npos) << text;
    for (const net::inet_address& a : n.addresses) {
        EXPECT_NE(text.find(a.to_string() + ": Connection refused"), std::string::npos) << text;
    }
}

TEST(SimConnect, ADeadlineEndsIt) {
    network n({answer::silent, answer::refuses, answer::silent});
    std::error_code code;
    const auto begin = n.w.now();
    const std::int64_t deadline =
        std::chrono::nanoseconds((begin + 400ms).time_since_epoch()).count();
    const std::string text =
        run_in(n.w, n.client,
               failure_of(net::detail::connect_to_any("x port 80", n.addresses, deadline), code));
    EXPECT_EQ(code, std::errc::timed_out);
    EXPECT_NE(text.find(n.addresses[1].to_string() + ": Connection refused"), std::string::npos)
        << text;
    EXPECT_NE(text.find("2 of 3 addresses did not answer"), std::string::npos) << text;
    EXPECT_TRUE(n.client.open_descriptors().empty());
}

task<net::socket> connect_to_name(std::string name) { return net::connect(name, port, 2s); }

task<bool> reaches(std::string name) {
    const net::socket s = co_await connect_to_name(name);
    co_return bool(s);
}

TEST(SimConnect, ByName) {
    sim::world w{1};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(accept_all(net::inet_address(port, AF_INET6)));
    w.run();
    auto handle = client.spawn(reaches("server"));
    ASSERT_TRUE(w.run_until([&] { return handle.done(); }, 10s));
    EXPECT_TRUE(handle.get());
    std::error_code code;
    const std::string text = run_in(w, client, failure_of(net::connect("absent", port), code));
    EXPECT_EQ(&code.category(), &net::resolver_category()) << text;
    EXPECT_NE(text.find("absent"), std::string::npos) << text;
}

TEST(SimConnect, ByName_ADeadlineThatHasPassed) {
    sim::world w{1};
    sim::host& client = w.host("client");
    w.host("server");
    std::error_code code;
    const std::string text = run_in(w, client, failure_of(net::connect("server", port, -1s), code));
    EXPECT_EQ(code, std::errc::timed_out) << text;
    EXPECT_NE(text.find("server port 80"), std::string::npos) << text;
}

TEST(SimConnect, G4_StoppedAtAnyMomentNothingStaysOpen) {
    for (int step = 0; step < 400; step += 7) {
        network n({answer::silent, answer::slow, answer::fast});
        std::error_code code;
        auto handle = n.client.spawn(failure_of(
            net::detail::connect_to_any("x", n.addresses, net::detail::no_deadline), code));
        n.w.run_for(std::chrono::milliseconds(step));
        handle.cancel();
        ASSERT_TRUE(n.w.run_until([&] { return handle.done(); }, 1s)) << step;
        const std::string text = handle.get();
        if (text != "connected") {
            EXPECT_EQ(code, std::errc::operation_canceled) << step << ": " << text;
        }
        EXPECT_TRUE(n.client.open_descriptors().empty()) << step;
    }
}

TEST(SimConnect, G5_DestroyedAtAnyMomentNothingStaysOpen) {
    for (int step = 0; step < 400; step += 11) {
        network n({answer::silent, answer::slow, answer::fast});
        [[maybe_unused]] auto handle = n.client.spawn(connect_and_tell(n.addresses));
        n.w.run_for(std::chrono::milliseconds(step));
        n.client.end_contexts();
        EXPECT_TRUE(n.client.open_descriptors().empty()) << step;
    }
}

TEST(SimConnect, FamiliesTakeTurnsAndIPv6IsFirst) {
    const net::inet_address a{"10.0.0.1", 1};
    const net::inet_address b{"10.0.0.2", 1};
    const net::inet_address c{"10.0.0.3", 1};
    const net::inet_address x{"fd00::1", 1};
    const net::inet_address y{"fd00::2", 1};
    using list = std::vector<net::inet_address>;
    EXPECT_EQ(net::detail::interleave({a, b, c, x, y}), (list{x, a, y, b, c}));
    EXPECT_EQ(net::detail::interleave({a, b}), (list{a, b}));
    EXPECT_EQ(net::detail::interleave({x}), (list{x}));
    EXPECT_EQ(net::detail::interleave({}), list{});
}

} // namespace
