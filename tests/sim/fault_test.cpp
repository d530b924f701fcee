// Each fault of a plan by itself: it occurs, and a correct program survives it. The program does
// not notice faults that the runtime handles.

#include "sim/support.hpp"

#include <coil/coil.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include <fcntl.h>

using namespace sim_test;

namespace {

struct single_fault {
    unsigned sim::fault_plan::* rate;
    const char* in_trace;
    int seen; ///< the error that the program sees; 0: none
};

constexpr std::uint16_t adder_port = 71;
using adder_bytes = std::array<char, 8>;

/// Adds one to each number that it receives.
task<> add_one(net::socket peer) {
    adder_bytes bytes;
    int n = co_await peer.recv_all(bytes);
    while (n == static_cast<int>(bytes.size())) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data(), 8);
        ++value;
        std::memcpy(bytes.data(), &value, 8);
        n = co_await peer.send_all(bytes);
        if (n == static_cast<int>(bytes.size())) {
            n = co_await peer.recv_all(bytes);
        }
    }
}

task<> adder() {
    for (;;) {
        try {
            net::acceptor acceptor{net::inet_address(adder_port)};
            while (net::socket peer = co_await acceptor.accept()) {
                coil::co_spawn(add_one(std::move(peer)));
            }
        } catch (const std::system_error&) {
            // no descriptor is left
        }
        co_await coil::sleep_for(1ms);
    }
}

/// The result of a program that repeats everything that has failed.
struct survivor {
    std::set<int> errors;
    unsigned asked = 0;
    unsigned stored = 0;

    bool ok(int result) {
        if (result < 0) {
            errors.insert(-result);
        }
        return result >= 0;
    }
};

task<> ask_adder(net::inet_address server, survivor& me) {
    for (std::uint64_t value = 0; value < 30;) {
        try {
            net::socket s = net::socket::create_tcp();
            const int connected = co_await s.connect(server);
            bool goes_on = me.ok(connected);
            while (goes_on && value < 30) {
                adder_bytes bytes;
                std::memcpy(bytes.data(), &value, 8);
                const int sent = co_await s.send_all(bytes);
                goes_on = me.ok(sent);
                const int got = goes_on ? int{co_await s.recv_all(bytes)} : 0;
                goes_on = goes_on && me.ok(got) && got == 8;
                if (goes_on) {
                    std::uint64_t answer = 0;
                    std::memcpy(&answer, bytes.data(), 8);
                    EXPECT_EQ(answer, value + 1);
                    value = answer;
                    ++me.asked;
                }
            }
        } catch (const std::system_error& e) {
            me.errors.insert(e.code().value());
        }
        co_await coil::sleep_for(1ms);
    }
}

task<bool> store_once(survivor& me, std::string text) {
    const int fd = co_await io::open("/tmp/f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (!me.ok(fd)) {
        co_return false;
    }
    std::size_t at = 0;
    bool good = true;
    while (good && at < text.size()) {
        const int n =
            co_await io::write(fd, std::string_view(text).substr(at), static_cast<::off_t>(at));
        good = me.ok(n);
        at += good ? static_cast<std::size_t>(n) : 0;
    }
    if (good) {
        const int synchronized = co_await io::fsync(fd);
        good = me.ok(synchronized);
    }
    co_await io::close(fd);
    co_return good;
}

task<> store(survivor& me) {
    for (char c = 'a'; c <= 'z';) {
        const bool stored = co_await store_once(me, std::string(5000, c));
        if (stored) {
            ++c;
            ++me.stored;
        }
    }
}

/// Cancels early and often: cancelled work must end.
task<> give_up_often(net::inet_address server, unsigned& given_up) {
    net::socket s = net::socket::create_tcp();
    const int connected = co_await s.connect(server);
    if (connected < 0) {
        co_return;
    }
    for (int i = 0; i < 30; ++i) {
        adder_bytes bytes;
        const int n = co_await coil::timeout(s.recv_all(bytes), 100us);
        EXPECT_LT(n, 0);
        given_up += n == -ETIMEDOUT ? 1 : 0;
    }
}

task<> chain_often(int out, int in) {
    for (int i = 0; i < 30; ++i) {
        char there[] = "ping";
        char back[4] = {};
        const int n =
            co_await (io::send(out, std::span(there, 4)) && io::recv(in, back, MSG_WAITALL));
        if (n == 4) {
            EXPECT_EQ(std::string_view(back, 4), "ping");
        }
    }
}

task<> receive_often(int fd, unsigned& received) {
    coil::buffer_pool pool(8, 64);
    while (received < 100) {
        auto incoming = io::recv_multishot(fd, pool);
        for (bool more = true; more && received < 100;) {
            auto part = co_await incoming.next();
            more = static_cast<bool>(part);
            received += more ? 1 : 0;
        }
    }
}

task<> send_often(int fd) {
    for (int i = 0; i < 200; ++i) {
        co_await io::send(fd, std::string_view("x"));
        co_await coil::sleep_for(10us);
    }
}

void play_single_fault(const single_fault& fault, unsigned per_mille) {
    SCOPED_TRACE(fault.in_trace);
    survivor me;
    unsigned given_up = 0;
    unsigned received = 0;
    sim::world_options options;
    options.faults.*fault.rate = per_mille;
    options.trace_lines = 1'000'000;
    sim::world w(5, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(adder());
    w.run_for(10ms); // until it listens
    for (int i = 0; i < 3; ++i) {
        client.co_spawn(ask_adder(server.address(adder_port), me));
    }
    const auto [a, b] = client.socket_pair(SOCK_STREAM);
    client.co_spawn(chain_often(a, b));
    client.co_spawn(store(me));
    if (fault.rate == &sim::fault_plan::end_multishot) {
        const auto [out, in] = client.socket_pair(SOCK_STREAM);
        client.co_spawn(send_often(out));
        client.co_spawn(receive_often(in, received));
    }
    w.run_until([&] { return me.asked == 90 && me.stored == 26; }, 1min);
    if (fault.seen == 0) {
        client.co_spawn(give_up_often(server.address(adder_port), given_up));
        w.run_for(1s);
        EXPECT_EQ(given_up, 30U);
    }
    EXPECT_EQ(received, fault.rate == &sim::fault_plan::end_multishot ? 100U : 0U);
    EXPECT_EQ(me.asked, 90U);
    EXPECT_EQ(me.stored, 26U);
    EXPECT_EQ(client.read_file("/tmp/f"), std::string(5000, 'z'));
    EXPECT_GT(w.faults(), 0U);
    EXPECT_NE(w.trace().find("fault: " + std::string(fault.in_trace)), std::string::npos);
    if (fault.seen == 0) {
        EXPECT_TRUE(me.errors.empty()) << "error " << *me.errors.begin();
    } else {
        EXPECT_TRUE(me.errors.contains(fault.seen));
    }
}

TEST(SimFault, ProgramsDoNotNoticeTheFaultsThatTheRuntimeHides) {
    using plan = sim::fault_plan;
    play_single_fault({&plan::delay_completion, "a completion is delayed", 0}, 300);
    play_single_fault({&plan::delay_turn, "a wake-up is late", 0}, 300);
    play_single_fault({&plan::late_after_cancel, "a cancellation is late", 0}, 500);
    play_single_fault({&plan::delay_link, "a linked call starts late", 0}, 500);
    play_single_fault({&plan::queue_full, "the ring consumes fewer entries", 0}, 300);
    play_single_fault({&plan::small_queues, "small queues", 0}, 1000);
    play_single_fault({&plan::interrupt_enter, "EINTR of io_uring_enter", 0}, 300);
    play_single_fault({&plan::end_multishot, "a multishot request ends early", 0}, 500);
    play_single_fault({&plan::short_transfer, "a short ", 0}, 500);
}

TEST(SimFault, AProgramSurvivesTheFaultsThatItSees) {
    using plan = sim::fault_plan;
    play_single_fault({&plan::interrupt, "EINTR", ECANCELED}, 30);
    play_single_fault({&plan::cancel, "ECANCELED", ECANCELED}, 30);
    play_single_fault({&plan::no_buffers, "ENOBUFS", ENOBUFS}, 50);
    play_single_fault({&plan::no_descriptors, "EMFILE", EMFILE}, 200);
    play_single_fault({&plan::no_space, "ENOSPC", ENOSPC}, 200);
    play_single_fault({&plan::io_error, "EIO", EIO}, 100);
    play_single_fault({&plan::lost_connection, "a connection is lost", ECONNRESET}, 50);
}

/// The loop that docs/guide/testing.md recommends.
task<> keep_adding() {
    net::acceptor acceptor{net::inet_address(adder_port)};
    const coil::inplace_stop_token stop = co_await coil::this_task::stop_token();
    while (!stop.stop_requested()) {
        net::socket peer = co_await acceptor.accept();
        if (peer) {
            coil::co_spawn(add_one(std::move(peer)));
        } else if (peer.error() != std::errc::operation_canceled) {
            throw std::system_error(peer.error(), "accept");
        }
    }
}

TEST(SimFault, AServerTellsACancellationFromAStopRequest) {
    survivor me;
    sim::world_options options;
    options.faults.cancel = 200;
    sim::world w(5, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    auto adding = server.spawn(keep_adding());
    w.run(); // until it listens
    for (int i = 0; i < 3; ++i) {
        client.co_spawn(ask_adder(server.address(adder_port), me));
    }
    EXPECT_TRUE(w.run_until([&] { return me.asked == 90; }, 1min));
    EXPECT_NE(w.trace().find("accept(#0) = -ECANCELED"), std::string::npos) << w.trace();
    EXPECT_FALSE(adding.done());
    adding.cancel();
    w.run_for(1s);
    EXPECT_TRUE(adding.done());
}

} // namespace
