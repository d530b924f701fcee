// TLS in a simulated world: the same sockets, with a network that fails.

#include "tls/support.hpp"

#include <string>
#include <system_error>
#include <utility>

using namespace coil;
using namespace tls_test;

namespace {

namespace sim = coil::sim;

constexpr std::uint16_t tls_port = 443;

task<> echo_session(net::socket peer, const tls::context& ctx) {
    tls::stream s{std::move(peer), ctx};
    if (co_await s.accept() < 0) {
        co_return;
    }
    try {
        co_await copy(s, s);
    } catch (const std::system_error&) {
        co_return; // the connection is lost
    }
    co_await s.shutdown_write();
}

task<> serve_tls(const tls::context& ctx) {
    for (;;) {
        try {
            net::acceptor acceptor(tls_port);
            while (net::socket peer = co_await acceptor.accept()) {
                co_await echo_session(std::move(peer), ctx);
            }
        } catch (const std::system_error&) {
            // no descriptor is left
        }
        co_await yield();
    }
}

/// Returns whether all data was echoed. Records a test failure if different data arrives.
task<bool> ask_tls(net::endpoint where, const tls::context& ctx, std::size_t size) {
    net::socket socket;
    try {
        socket = net::socket::create_tcp();
    } catch (const std::system_error&) {
        co_return false;
    }
    if (co_await socket.connect(where) != 0) {
        co_return false;
    }
    tls::stream s{std::move(socket), ctx};
    int shaken = -ECANCELED;
    for (int i = 0; i < 100 && shaken == -ECANCELED; ++i) {
        shaken = co_await s.handshake("example.test");
    }
    if (shaken < 0) {
        co_return false;
    }
    const std::string text = pattern(size);
    auto send = [](tls::stream& to, const std::string& data) -> task<bool> {
        std::size_t done = 0;
        while (done < data.size()) {
            const int n = co_await to.write_some({data.data() + done, data.size() - done});
            if (n < 0 && n != -ECANCELED && n != -ENOBUFS) {
                co_return false;
            }
            done += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
        for (;;) {
            const int n = co_await to.shutdown_write();
            if (n != -ECANCELED && n != -ENOBUFS) {
                co_return n == 0;
            }
        }
    };
    auto receive = [](tls::stream& from, std::string& into) -> task<bool> {
        char buf[1000];
        for (;;) {
            const int n = co_await from.read_some(buf);
            if (n > 0) {
                into.append(buf, static_cast<std::size_t>(n));
            } else if (n != -ECANCELED) {
                co_return n == 0;
            }
        }
    };
    std::string got;
    auto [sent, received] = co_await when_all(send(s, text), receive(s, got));
    EXPECT_TRUE(text.starts_with(got));
    EXPECT_TRUE(!received || got == text || !sent) << "a truncated stream looks complete";
    co_return sent&& received&& got == text;
}

TEST(TlsInAWorld, WithoutFaultsEverythingComesBack) {
    const tls::context server = server_context();
    const tls::context client = client_context();
    sim::for_each_seed(20, [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::timing();
        sim::world w{seed, options};
        w.host("server").co_spawn(serve_tls(server));
        w.run();
        auto done =
            w.host("client").spawn(ask_tls(w.host("server").address(tls_port), client, 100'000));
        EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
        EXPECT_TRUE(done.get());
    });
}

TEST(TlsInAWorld, G4_UnderAllFaultsDataIsIntactAndNothingLeaks) {
    const tls::context server = server_context();
    const tls::context client = client_context();
    int complete = 0;
    sim::for_each_seed(coil_test::rounds(60, 1000), [&](std::uint64_t seed) {
        sim::world_options options;
        options.faults = sim::fault_plan::everything();
        sim::world w{seed, options};
        sim::host& h = w.host("server");
        h.co_spawn(serve_tls(server));
        w.run();
        for (int i = 0; i < 3; ++i) {
            auto done = w.host("client").spawn(ask_tls(h.address(tls_port), client, 3'000));
            EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h));
            complete += done.done() && done.get() ? 1 : 0;
        }
        w.run_for(1h);
        EXPECT_LE(h.open_descriptors().size(), 1U); // only the acceptor
    });
    EXPECT_GT(complete, 30);
}

TEST(TlsInAWorld, G5_AServerThatIsEndedAtAnyMomentLeavesNothing) {
    const tls::context server = server_context();
    const tls::context client = client_context();
    for (int step = 0; step < 3000; step += 61) {
        sim::world w{static_cast<std::uint64_t>(step) + 1};
        w.host("server").co_spawn(serve_tls(server));
        w.run();
        auto done =
            w.host("client").spawn(ask_tls(w.host("server").address(tls_port), client, 50'000));
        w.run_for(std::chrono::microseconds(step));
        w.host("server").end_contexts();
        EXPECT_TRUE(w.host("server").open_descriptors().empty()) << step;
        EXPECT_TRUE(w.run_until([&] { return done.done(); }, 1h)) << step;
    }
}

} // namespace
