// The world itself: its clock and its order of events, both determined by the seed.

#include "support/run.hpp"

#include <coil/context/runtime.hpp>
#include <coil/context/this_context.hpp>
#include <coil/net/resolve.hpp>
#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>
#include <coil/uring/probe.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

using coil::task;
using namespace std::chrono_literals;
namespace sim = coil::sim;
namespace net = coil::net;

task<> ping_session(net::socket peer) {
    char buf[64];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

task<> ping_server(std::uint16_t port) try {
    net::acceptor acceptor{net::inet_address(port)};
    while (net::socket peer = co_await acceptor.accept()) {
        coil::co_spawn(ping_session(std::move(peer)));
    }
} catch (const std::system_error& e) {
    EXPECT_EQ(e.code().value(), EMFILE);
}

task<int> ping_client(net::inet_address server, int count) {
    net::socket s = net::socket::create_tcp();
    int answers = 0;
    if (const int error = co_await s.connect(server); error < 0) {
        co_return error;
    }
    for (int i = 0; i < count; ++i) {
        const int sent = co_await s.send_all("PING\r\n");
        if (sent < 0) {
            co_return sent;
        }
        char buf[5];
        const int received = co_await s.recv_all(buf);
        if (received != 5) {
            co_return received;
        }
        ++answers;
    }
    co_return answers;
}

struct ping_run {
    int answers = 0;
    std::uint64_t hash = 0;
    std::chrono::nanoseconds took{};
    std::string trace;
};

ping_run run_pings(std::uint64_t seed, int count, sim::world_options options = {}) {
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(ping_server(6379));
    const auto begin = w.now();
    auto result = client.spawn(ping_client(server.address(6379), count));
    w.run();
    ping_run run;
    run.answers = result.get();
    run.hash = w.trace_hash();
    run.took = w.now() - begin;
    run.trace = w.trace();
    return run;
}

TEST(SimWorld, APingGoesThereAndBack) {
    const ping_run run = run_pings(1, 3);
    EXPECT_EQ(run.answers, 3) << run.trace;
    EXPECT_GE(run.took, 300us);
    EXPECT_LE(run.took, 5ms);
}

TEST(SimWorld, TheSameSeedGivesTheSameRunAndOtherSeedsGiveOtherRuns) {
    const ping_run first = run_pings(7, 20);
    const ping_run second = run_pings(7, 20);
    const ping_run other = run_pings(8, 20);
    EXPECT_EQ(first.hash, second.hash);
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_NE(first.hash, other.hash);
}

/// Another process has its code and its heap at other addresses: nothing may depend on them.
TEST(SimWorld, AnotherProcessGetsTheSameHash) {
    constexpr const char* printing = "COIL_SIM_PRINT_HASH";
    sim::world_options options;
    options.faults = sim::fault_plan::everything();
    const std::string hash = std::to_string(run_pings(11, 50, options).hash);
    if (std::getenv(printing) != nullptr) {
        std::printf("hash %s\n", hash.c_str());
        return;
    }
    char self[4096] = {};
    ASSERT_GT(::readlink("/proc/self/exe", self, sizeof self - 1), 0);
    std::FILE* const other = ::popen(
        (std::string(printing) + "=1 '" + self + "' --gtest_filter=SimWorld.AnotherProcess*")
            .c_str(),
        "r");
    ASSERT_NE(other, nullptr);
    std::string said;
    char line[256];
    while (std::fgets(line, sizeof line, other) != nullptr) {
        said += line;
    }
    ::pclose(other);
    EXPECT_NE(said.find("hash " + hash + "\n"), std::string::npos) << hash << '\n' << said;
}

TEST(SimWorld, EverySeedOfFaultyPingsEnds) {
    sim::world_options options;
    options.faults = sim::fault_plan::everything();
    int all = 0;
    int some = 0;
    int failed = 0;
    const bool ok = sim::for_each_seed(
        static_cast<std::uint64_t>(coil_test::rounds(200, 10'000)), [&](std::uint64_t seed) {
            try {
                const ping_run run = run_pings(seed, 20, options);
                (run.answers == 20 ? all : run.answers < 0 ? failed : some) += 1;
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code().value(), EMFILE);
                ++failed;
            }
            return !HasFailure();
        });
    EXPECT_TRUE(ok);
    EXPECT_GT(all, 0);
    EXPECT_GT(some + failed, 0);
}

task<> keep_connection(net::inet_address server, int& connected) {
    net::socket s = net::socket::create_tcp();
    const int result = co_await s.connect(server);
    connected += result == 0 ? 1 : 0;
    char buf[16];
    co_await s.recv(buf);
}

TEST(SimWorld, AnHourOfAHundredIdleConnectionsTakesNoTime) {
    sim::world w{1};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(ping_server(7));
    int connected = 0;
    for (int i = 0; i < 100; ++i) {
        client.co_spawn(keep_connection(server.address(7), connected));
    }
    const auto begin = std::chrono::steady_clock::now();
    w.run_for(1h);
    EXPECT_EQ(connected, 100);
    EXPECT_GE(w.now().time_since_epoch(), 1h);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}

task<> tick_for_ever(int& ticks, const coil_test::on_destruction& destroyed) {
    static_cast<void>(destroyed);
    for (;;) {
        co_await coil::sleep_for(1s);
        ++ticks;
    }
}

task<> hold_and_tick(int& ticks, coil_test::on_destruction destroyed) {
    co_await tick_for_ever(ticks, destroyed);
}

TEST(SimWorld, G5_ACrashDestroysTheTasksWhereTheyAreSuspended) {
    int ticks = 0; // both outlive the world, which destroys its tasks
    int destroyed = 0;
    sim::world w{1};
    sim::host& h = w.host("h");
    h.co_spawn(hold_and_tick(ticks, coil_test::on_destruction(destroyed)));
    w.run_for(10'500ms);
    EXPECT_EQ(ticks, 10);
    h.crash();
    EXPECT_EQ(destroyed, 1);
    EXPECT_FALSE(h.is_up());
    w.run_for(10s);
    EXPECT_EQ(ticks, 10);
    h.restart();
    h.co_spawn(hold_and_tick(ticks, coil_test::on_destruction(destroyed)));
    w.run_for(5'500ms);
    EXPECT_EQ(ticks, 15);
}

task<> crash_oneself(sim::host& h, int& after) {
    h.crash();
    ++after; // this turn still finishes
    co_await coil::sleep_for(1s);
    ++after;
}

TEST(SimWorld, AHostThatCrashesItselfFinishesItsTurn) {
    sim::world w{1};
    int after = 0;
    sim::host& h = w.host("h");
    h.co_spawn(crash_oneself(h, after));
    w.run();
    EXPECT_EQ(after, 1);
    EXPECT_FALSE(h.is_up());
}

task<int> block_in(int value) {
    const auto here = std::this_thread::get_id();
    const int doubled = co_await coil::blocking([value, here] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        return 2 * value;
    });
    co_return doubled;
}

TEST(SimWorld, BlockingWorkIsDoneOnTheOnlyThread) {
    sim::world w{1};
    auto result = w.host("h").spawn(block_in(21));
    w.run();
    EXPECT_EQ(result.get(), 42);
}

task<> visit(coil::io_context& there, int& where) {
    co_await coil::resume_on(there);
    where = &coil::this_context() == &there ? 1 : 2;
}

TEST(SimWorld, TasksMoveBetweenTheContextsOfAHost) {
    sim::world w{1};
    sim::host& h = w.host("h");
    int where = 0;
    h.context(0).co_spawn(visit(h.context(1), where));
    w.run();
    EXPECT_EQ(where, 1);
}

task<std::string> make_runtime() {
    try {
        const coil::runtime threads(1U);
        co_return "made";
    } catch (const std::logic_error& e) {
        co_return e.what();
    }
}

TEST(SimWorld, ARuntimeIsRefusedAndSaysWhatToUse) {
    sim::world w{1};
    auto result = w.host("h").spawn(make_runtime());
    w.run();
    EXPECT_NE(result.get().find("sim::host::context()"), std::string::npos);
}

TEST(SimWorld, NothingRunsOnAHostWithoutPower) {
    sim::world w{1};
    sim::host& h = w.host("h");
    h.crash();
    int booted = 0;
    h.on_start([&](sim::host&) { ++booted; });
    EXPECT_EQ(booted, 0);
    int ticks = 0;
    EXPECT_THROW(h.co_spawn(crash_oneself(h, ticks)), std::logic_error);
    h.restart();
    EXPECT_EQ(booted, 1);
    h.co_spawn(crash_oneself(h, ticks));
    w.run();
    EXPECT_EQ(ticks, 1);
}

task<std::string> resolve_to_text(std::string host, std::string service) {
    try {
        std::string all;
        for (const net::inet_address& a :
             co_await net::resolve(std::move(host), std::move(service))) {
            all += a.to_string() + ' ';
        }
        co_return all;
    } catch (const std::system_error& e) {
        co_return e.what();
    }
}

TEST(SimWorld, NamesOfHostsAreResolved) {
    sim::world w{1};
    sim::host& a = w.host("a");
    w.host("b");
    auto b = a.spawn(resolve_to_text("b", "80"));
    auto itself = a.spawn(resolve_to_text("localhost", "80"));
    auto unknown_host = a.spawn(resolve_to_text("example.org", "80"));
    auto service = a.spawn(resolve_to_text("b", "no such service"));
    w.run();
    EXPECT_EQ(b.get(), "10.0.0.2:80 [fd00::2]:80 ");
    EXPECT_EQ(itself.get(), "[::1]:80 127.0.0.1:80 ");
    EXPECT_NE(unknown_host.get().find("cannot resolve \"example.org\""), std::string::npos);
    EXPECT_NE(service.get().find("cannot resolve \"b\""), std::string::npos);
}

task<> resolve_and_crash(sim::host& h, std::string& text) {
    h.crash();
    text = co_await resolve_to_text("b", "80");
}

TEST(SimWorld, G1_ACrashDuringALookUpLeavesNothingBehind) {
    std::string text;
    sim::world w{1};
    sim::host& h = w.host("h");
    h.co_spawn(resolve_and_crash(h, text));
    w.run();
    EXPECT_EQ(text, "");
}

task<bool> can_query_the_kernel() {
    coil::uring::ring& ring = coil::this_context().loop().ring();
    co_return coil::uring::query_kernel(ring.get_backend()).has_value();
}

TEST(SimWorld, TheKernelBehindItIsNotReported) {
    sim::world w{1};
    auto answered = w.host("h").spawn(can_query_the_kernel());
    w.run();
    EXPECT_FALSE(answered.get());
}

} // namespace
