// net::serve with balancing::least_connections. The tests use a Unix socket, which only the first
// context accepts from, so that the others get their connections by hand-over alone.

#include "serve_support.hpp"
#include "support/descriptors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::echo;
using coil_test::serve_and;
using net::endpoint;

namespace {

endpoint local_name() {
    static std::atomic<int> next{0};
    return net::unix_address::abstract("coil-balance-" + std::to_string(::getpid()) + "-" +
                                       std::to_string(++next));
}

net::serve_options balanced() {
    net::serve_options options;
    options.balancing = net::balancing::least_connections;
    options.meter = std::make_shared<net::serve_meter>();
    return options;
}

/// A runtime whose top-level tasks run on the first context.
runtime_options from_first(unsigned contexts) {
    runtime_options options;
    options.contexts = contexts;
    options.dispatcher = [](const runtime&) { return std::size_t{0}; };
    return options;
}

task<net::socket> connect_to(endpoint where) {
    net::socket s =
        where.is_unix() ? net::socket::create_unix() : net::socket::create_tcp(where.family());
    EXPECT_EQ(co_await s.connect(where), 0);
    co_return s;
}

task<bool> exchanges_a_byte(net::socket& s) {
    char c = 'x';
    const int sent = co_await s.send({&c, 1});
    const int received = co_await s.recv({&c, 1});
    co_return sent == 1 && received == 1;
}

/// Connects `count` clients that are all served at the same time.
task<> keep_connected(endpoint where, int count) {
    std::vector<net::socket> clients;
    for (int i = 0; i < count; ++i) {
        clients.push_back(co_await connect_to(where));
        EXPECT_TRUE(co_await exchanges_a_byte(clients.back())) << i;
    }
}

/// Serves `clients` connections that stay open, and returns how many each context had.
std::vector<int> distribution(unsigned contexts, int clients, const endpoint& where,
                              const net::serve_options& options) {
    runtime rt(from_first(contexts));
    std::vector<std::atomic<int>> served(contexts);
    auto handler = [&](net::socket peer) {
        for (std::size_t i = 0; i < rt.size(); ++i) {
            served[i] += &rt.context(i) == &this_context() ? 1 : 0;
        }
        return echo(std::move(peer));
    };
    serve_and(rt, where, handler, options,
              [=](endpoint at, join_handle<void>&) { return keep_connected(at, clients); });
    return {served.begin(), served.end()};
}

TEST(NetServeBalance, TheKernelAloneGivesAUnixSocketToTheFirstContext) {
    net::serve_options options;
    options.meter = std::make_shared<net::serve_meter>();
    EXPECT_EQ(distribution(2, 10, local_name(), options), (std::vector{10, 0}));
    EXPECT_EQ(options.meter->metrics().moved, 0U);
}

TEST(NetServeBalance, AllContextsGetConnectionsOfAUnixSocket) {
    const net::serve_options options = balanced();
    const std::vector<int> served = distribution(3, 30, local_name(), options);
    const auto [least, most] = std::ranges::minmax(served);
    EXPECT_EQ(served[0] + served[1] + served[2], 30);
    EXPECT_LE(most - least, 2);
    EXPECT_EQ(options.meter->metrics().moved, static_cast<std::uint64_t>(served[1] + served[2]));
}

TEST(NetServeBalance, AnIdleContextGetsTheConnection) {
    const net::serve_options options = balanced();
    EXPECT_EQ(distribution(3, 3, local_name(), options), (std::vector{1, 1, 1}));
    EXPECT_EQ(options.meter->metrics().moved, 2U);
}

TEST(NetServeBalance, ADifferenceOfOneMovesNothing) {
    const net::serve_options options = balanced();
    EXPECT_EQ(distribution(2, 4, local_name(), options), (std::vector{3, 1})); // the second moves
    EXPECT_EQ(options.meter->metrics().moved, 1U);
    EXPECT_EQ(distribution(2, 5, local_name(), options), (std::vector{3, 2}));
}

TEST(NetServeBalance, NoContextHasManyMoreConnectionsThanAnother) {
    const std::vector<int> served = distribution(2, 40, {"127.0.0.1", 0}, balanced());
    EXPECT_EQ(served[0] + served[1], 40);
    EXPECT_LE(std::abs(served[0] - served[1]), 3); // 2, and a sixteenth of at most 20
}

TEST(NetServeBalance, OneContextMovesNothing) {
    const net::serve_options options = balanced();
    EXPECT_EQ(distribution(1, 10, local_name(), options), (std::vector{10}));
    EXPECT_EQ(options.meter->metrics().moved, 0U);
}

TEST(NetServeBalance, TheyCountOnlyWhileTheyAreOpen) {
    const net::serve_options options = balanced();
    runtime rt(from_first(2));
    serve_and(rt, local_name(), echo, options, [](endpoint at, join_handle<void>&) -> task<> {
        for (int i = 0; i < 20; ++i) {
            net::socket s = co_await connect_to(at);
            EXPECT_TRUE(co_await exchanges_a_byte(s));
            co_await s.shutdown_write();
            char c;
            EXPECT_EQ((co_await s.recv({&c, 1})), 0); // the handler has ended
        }
    });
    EXPECT_EQ(options.meter->metrics().moved, 0U);
    EXPECT_EQ(options.meter->metrics().open, 0U);
}

TEST(NetServeBalance, G6_NoMoreThanMaxConnections) {
    std::atomic<int> now = 0;
    std::atomic<int> most = 0;
    auto counted = [&](net::socket peer) -> task<> {
        const int n = ++now;
        for (int before = most; before < n && !most.compare_exchange_weak(before, n);) {
        }
        co_await echo(std::move(peer));
        --now;
    };
    net::serve_options options = balanced();
    options.max_connections = 4;
    runtime rt(from_first(2));
    serve_and(rt, local_name(), counted, options, [](endpoint at, join_handle<void>&) -> task<> {
        std::vector<net::socket> clients;
        for (int i = 0; i < 12; ++i) {
            clients.push_back(co_await connect_to(at));
            EXPECT_EQ(co_await clients.back().send("x"), 1);
        }
        for (net::socket& s : clients) { // in the order in which they connected
            char c;
            EXPECT_EQ((co_await s.recv({&c, 1})), 1);
            EXPECT_EQ(co_await s.close(), 0);
        }
    });
    EXPECT_EQ(most, 4);
    EXPECT_EQ(options.meter->metrics().accepted, 12U);
    EXPECT_GE(options.meter->metrics().held_back, 1U);
}

TEST(NetServeBalance, G12_AnExceptionEndsItsConnectionAlone) {
    std::array<std::atomic<int>, 2> reported{};
    runtime_options options = from_first(2);
    runtime* all = nullptr;
    options.context.on_unhandled_exception = [&](std::exception_ptr) {
        ++reported[&this_context() == &all->context(0) ? 0 : 1];
    };
    runtime rt(options);
    all = &rt;
    auto fragile = [](net::socket peer) -> task<> {
        char c;
        EXPECT_EQ((co_await peer.recv({&c, 1})), 1);
        throw std::runtime_error("no");
    };
    const net::serve_options limits = balanced();
    serve_and(rt, local_name(), fragile, limits, [](endpoint at, join_handle<void>&) -> task<> {
        std::vector<net::socket> clients;
        for (int i = 0; i < 3; ++i) {
            clients.push_back(co_await connect_to(at));
        }
        for (net::socket& s : clients) {
            EXPECT_EQ(co_await s.send("x"), 1);
            char c;
            EXPECT_EQ((co_await s.recv({&c, 1})), 0);
        }
    });
    EXPECT_EQ(limits.meter->metrics().failed, 3U);
    EXPECT_EQ(limits.meter->metrics().moved, 1U);
    EXPECT_EQ(reported[0], 2);
    EXPECT_EQ(reported[1], 1); // on the context that served it
}

task<> echo_shielded(net::socket peer) { co_await shield(echo(std::move(peer))); }

TEST(NetServeBalance, G5_GraceAndHardDeadlineApplyToMovedConnections) {
    net::serve_options options = balanced();
    options.grace = 20ms;
    options.hard_deadline = 20ms;
    runtime rt(from_first(2));
    serve_and(rt, local_name(), echo_shielded, options,
              [](endpoint at, join_handle<void>& server) -> task<> {
                  std::vector<net::socket> clients;
                  for (int i = 0; i < 8; ++i) {
                      clients.push_back(co_await connect_to(at));
                      EXPECT_TRUE(co_await exchanges_a_byte(clients.back()));
                  }
                  server.cancel();
                  for (net::socket& s : clients) {
                      char c;
                      EXPECT_EQ((co_await s.recv({&c, 1})), 0);
                  }
              });
    const net::serve_metrics m = options.meter->metrics();
    EXPECT_GE(m.moved, 3U);
    EXPECT_EQ(m.grace_ended, 8U);
    EXPECT_EQ(m.hard_ended, 8U);
    EXPECT_EQ(m.open, 0U);
}

// ---- connections that are being handed over while the server ends. The second context is blocked,
// ---- so it has not received them.

/// Keeps the thread of a context from running anything else until release().
class blocked_context {
public:
    explicit blocked_context(io_context& on) {
        on.post([this] {
            entered_.release();
            left_.acquire();
        });
        entered_.acquire();
    }
    void release() { left_.release(); }

private:
    std::binary_semaphore entered_{0};
    std::binary_semaphore left_{0};
};

/// What a test of a hand-over has.
struct hand_over {
    explicit hand_over(bool second_listens) : listens(second_listens) {}

    /// Serves and connects four clients, the second of which is handed over to the second context.
    /// `listens`: whether that context has begun to serve before it is blocked.
    task<> begin(supervisor& owner) {
        if (!listens) {
            blocked.emplace(rt.context(1));
        }
        oneshot<endpoint> listening;
        net::serve_options options = limits;
        options.on_listening = [&](const endpoint& e) { listening.send(e); };
        auto handler = [this](net::socket peer) {
            ++handled;
            return echo(std::move(peer));
        };
        owner.spawn(net::serve(rt, local_name(), handler, options));
        const auto bound = co_await listening.recv();
        where = *bound;
        if (listens) {
            co_await rt.context(1).spawn([]() -> task<> { co_return; }); // after the listener
            blocked.emplace(rt.context(1));
        }
        for (int i = 0; i < 4; ++i) {
            clients.push_back(co_await connect_to(where));
            EXPECT_EQ(co_await clients.back().send("x"), 1);
        }
        while (limits.meter->metrics().accepted < 4 || handled < 3) {
            co_await yield();
        }
        EXPECT_EQ(limits.meter->metrics().moved, 1U);
        EXPECT_EQ(handled, 3);
    }

    task<> expect_no_listener() {
        net::socket other = net::socket::create_unix();
        while (co_await other.connect(where) == 0) {
            other = net::socket::create_unix();
        }
    }

    const bool listens;
    net::serve_options limits = balanced();
    std::atomic<int> handled = 0;
    runtime rt{from_first(2)};
    std::optional<blocked_context> blocked;
    endpoint where;
    std::vector<net::socket> clients;
};

class NetServeHandOver : public testing::TestWithParam<bool> {
protected:
    NetServeHandOver() : before_(coil_test::open_descriptors()), test_(std::in_place, GetParam()) {}
    void expect_nothing_left() {
        const std::shared_ptr<net::serve_meter> meter = test_->limits.meter;
        test_.reset();
        EXPECT_EQ(meter->metrics().open, 0U);
        EXPECT_EQ(coil_test::open_descriptors(), before_);
    }

    const std::set<int> before_;
    std::optional<hand_over> test_;
};

TEST_P(NetServeHandOver, G5_AServerThatStopsServesTheConnection) {
    auto main = [](hand_over& test) -> task<> {
        supervisor owner;
        co_await test.begin(owner);
        owner.cancel();
        co_await test.expect_no_listener();
        test.blocked->release();
        for (net::socket& s : test.clients) {
            char c;
            EXPECT_EQ((co_await s.recv({&c, 1})), 1);
            EXPECT_EQ(co_await s.shutdown_write(), 0);
            EXPECT_EQ((co_await s.recv({&c, 1})), 0);
        }
        co_await owner.join();
    };
    test_->rt.block_on(main(*test_));
    EXPECT_EQ(test_->handled, 4);
    EXPECT_EQ(test_->limits.meter->metrics().open, 0U); // when the await of serve() has returned
    expect_nothing_left();
}

TEST_P(NetServeHandOver, ADestroyedServerClosesTheConnection) {
    auto main = [](hand_over& test) -> task<> {
        supervisor owner;
        co_await test.begin(owner);
        EXPECT_FALSE(co_await owner.join(0ms));
        test.blocked->release();
        for (net::socket& s : test.clients) {
            char c;
            while (co_await s.recv({&c, 1}) > 0) { // what was echoed, and the end
            }
        }
    };
    test_->rt.block_on(main(*test_));
    expect_nothing_left();
}

TEST_P(NetServeHandOver, AShutdownOfTheRuntimeClosesTheConnection) {
    /// In the frame of a task that the shutdown of the first context destroys: the second context
    /// continues after that, and finds the connection.
    struct release_at_exit {
        hand_over& test;
        ~release_at_exit() { test.blocked->release(); }
    };
    auto keep = [](hand_over& test, event& ready) -> task<> {
        const release_at_exit at_exit{test};
        supervisor owner;
        co_await test.begin(owner);
        ready.set();
        co_await owner.join();
    };
    event ready;
    test_->rt.co_spawn(keep(*test_, ready));
    test_->rt.block_on([](event& until) -> task<> { co_await until.wait(); }(ready));
    expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Second, NetServeHandOver, testing::Bool(),
                         [](const auto& info) { return info.param ? "Listens" : "HasNotBegun"; });

} // namespace
