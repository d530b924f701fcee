// Step 7 of the tutorial: the chat server in simulated worlds.

#include "tutorial/chat.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace chat_tutorial {

using namespace coil;
using namespace std::chrono_literals;

// [client]
/// Connects and sends `text`, whose first line is the client's name. Receives until `last` has
/// arrived or the connection has ended, and returns all that was received.
task<std::string> client(net::inet_address server, std::string text, std::string last) {
    net::socket s = net::socket::create_tcp();
    if (co_await s.connect(server) < 0) {
        co_return "";
    }
    co_await s.send_all(text);
    std::string seen;
    char buf[256];
    int n = 0;
    while (seen.find(last) == std::string::npos && (n = co_await s.recv(buf)) > 0) {
        seen.append(buf, static_cast<std::size_t>(n));
    }
    co_return seen;
}

/// Sockets are created inside a task of their host.
task<> serve(chat::room& room, event& stop) {
    co_await chat::serve(net::acceptor{net::inet_address{7000}}, room, stop);
}
// [/client]

// [hears]
bool all_clients_hear(std::uint64_t seed) {
    chat::room room{chat::limits{}}; // objects that tasks refer to are declared before the world
    event stop;
    sim::world_options options;
    options.faults = sim::fault_plan::timing(); // only faults that the runtime hides from a program
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run(); // until it listens

    auto ada = w.host("a").spawn(client(server.address(7000), "ada\n", "bob: hello"));
    w.run_for(1s); // a few microseconds of real time
    auto bob = w.host("b").spawn(client(server.address(7000), "bob\nhello\n", "bob: hello"));
    const bool ended = w.run_until([&] { return ada.done() && bob.done(); }, 10s);
    return ended && ada.get().find("bob: hello\n") != std::string::npos;
}

TEST(ChatTutorial, AllClientsHear) { EXPECT_TRUE(sim::for_each_seed(200, all_clients_hear)); }
// [/hears]

/// A client that sends many lines in one burst does not fill the channels of those that read.
bool a_burst_is_heard(std::uint64_t seed) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world w(seed);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run();
    auto ada = w.host("a").spawn(client(server.address(7000), "ada\n", "bob: last"));
    w.run_for(1s);
    std::string lines = "bob\n";
    for (int i = 0; i < 500; ++i) {
        lines += "x\n";
    }
    auto bob = w.host("b").spawn(client(server.address(7000), lines + "last\n", "bob: last"));
    const bool ended = w.run_until([&] { return ada.done() && bob.done(); }, 10s);
    return ended && ada.get().find("bob: last") != std::string::npos;
}

TEST(ChatTutorial, ABurstIsHeard) { EXPECT_TRUE(sim::for_each_seed(50, a_burst_is_heard)); }

/// A client that sends a line while the server cannot be reached. Returns how many it has received.
task<int> member_of_a_crowd(net::inet_address server, int crowd_size) {
    net::socket s = net::socket::create_tcp();
    if (co_await s.connect(server) < 0) {
        co_return 0;
    }
    co_await s.send_all("ada\n");
    co_await sleep_for(2s);
    co_await s.send_all("hello\n");
    int heard = 0;
    buffered_reader reader{s};
    auto lines = reader.lines(100);
    while (heard < crowd_size) {
        const auto line = co_await lines.next();
        if (!line) {
            break;
        }
        heard += *line == "ada: hello" ? 1 : 0;
    }
    co_return heard;
}

/// Clients that speak at the same moment do not fill each other's channels.
bool a_crowd_is_heard(std::uint64_t seed, int crowd_size, std::size_t queued_lines) {
    chat::limits limits;
    limits.queued_lines = queued_lines; // fewer than the crowd has clients
    chat::room room{limits};
    event stop;
    sim::world_options options;
    options.turn = 200us; // long: one turn of the server receives many lines
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    sim::host& others = w.host("a");
    server.co_spawn(serve(room, stop));
    w.run();
    std::vector<join_handle<int>> crowd;
    for (int i = 0; i < crowd_size; ++i) {
        crowd.push_back(others.spawn(member_of_a_crowd(server.address(7000), crowd_size)));
    }
    w.run_for(1s);
    w.partition(server, others);
    w.run_for(2s);
    w.heal(server, others); // the server receives the lines of all clients together
    const auto ended = [](const join_handle<int>& each) { return each.done(); };
    if (!w.run_until([&] { return std::ranges::all_of(crowd, ended); }, 10s)) {
        return false;
    }
    return std::ranges::all_of(crowd, [=](auto& each) { return each.get() == crowd_size; });
}

TEST(ChatTutorial, ACrowdIsHeard) {
    EXPECT_TRUE(
        sim::for_each_seed(50, [](std::uint64_t seed) { return a_crowd_is_heard(seed, 24, 8); }));
    const std::size_t queued_lines = chat::limits{}.queued_lines;
    EXPECT_TRUE(a_crowd_is_heard(1, 100, queued_lines));
}

/// A client that does not read is closed, and those that read hear every line.
bool a_client_that_does_not_read_is_closed(std::uint64_t seed) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world_options options;
    options.socket_buffer = 500;
    sim::world w(seed, options);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run();
    w.host("a").co_spawn([](net::inet_address to) -> task<> {
        net::socket s = net::socket::create_tcp();
        co_await s.connect(to);
        co_await sleep_for(1h);
    }(server.address(7000)));
    w.run_for(1s);
    std::string lines = "bob\n";
    for (int i = 0; i < 200; ++i) {
        lines += "a line\n";
    }
    auto bob = w.host("b").spawn(client(server.address(7000), lines + "last\n", "bob: last"));
    const bool heard = w.run_until([&] { return bob.done(); }, 10s) &&
                       bob.get().find("bob: last") != std::string::npos;
    w.run_for(1min);                                       // less than the limit of an idle client
    return heard && server.open_descriptors().size() == 1; // the acceptor's
}

TEST(ChatTutorial, AClientThatDoesNotReadIsClosed) {
    EXPECT_TRUE(sim::for_each_seed(50, a_client_that_does_not_read_is_closed));
}

// [idle]
TEST(ChatTutorial, AnIdleClientIsClosed) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world w(1);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run();
    auto silent = w.host("a").spawn(client(server.address(7000), "ada\n", "never said"));
    w.run_for(299s);
    EXPECT_FALSE(silent.done());
    w.run_for(2s);
    EXPECT_TRUE(silent.done());
}
// [/idle]

// [stop]
TEST(ChatTutorial, AStoppedServerSaysGoodbye) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world w(1);
    sim::host& server = w.host("server");
    auto served = server.spawn(serve(room, stop));
    w.run();
    auto ada = w.host("a").spawn(client(server.address(7000), "ada\n", "never said"));
    w.run_for(1s);
    stop.set();
    w.run_for(1s);
    ASSERT_TRUE(served.done());
    ASSERT_TRUE(ada.done());
    EXPECT_EQ(ada.get(), "* ada is here\n* the server stops\n");
    EXPECT_TRUE(server.open_descriptors().empty());
}
// [/stop]

/// The goodbye arrives although the server has not read everything that the client has sent.
bool unread_lines_do_not_cost_the_goodbye(std::uint64_t seed) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world w(seed);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run();
    std::string lines = "ada\n";
    for (int i = 0; i < 5000; ++i) {
        lines += "a line\n";
    }
    auto ada = w.host("a").spawn(client(server.address(7000), lines, "never said"));
    w.run_for(100ms); // the server reads a line each millisecond
    stop.set();
    w.run_for(10s);
    return ada.done() && ada.get().ends_with("* the server stops\n") &&
           server.open_descriptors().empty();
}

TEST(ChatTutorial, UnreadLinesDoNotCostTheGoodbye) {
    EXPECT_TRUE(sim::for_each_seed(50, unread_lines_do_not_cost_the_goodbye));
}

TEST(ChatTutorial, AClientIsToldThatTheRoomIsFull) {
    chat::limits limits;
    limits.clients = 1;
    chat::room room{limits};
    event stop;
    sim::world w(1);
    sim::host& server = w.host("server");
    server.co_spawn(serve(room, stop));
    w.run();
    [[maybe_unused]] const auto ada =
        w.host("a").spawn(client(server.address(7000), "ada\n", "never said"));
    w.run_for(1s);
    auto bob = w.host("b").spawn(client(server.address(7000), "bob\nhello\n", "never said"));
    w.run_for(1s);
    ASSERT_TRUE(bob.done());
    EXPECT_EQ(bob.get(), "* the room is full\n");
}

// [vanished]
/// A client's network fails: the server's limits detect it, and nothing of the client remains.
bool nothing_is_left_of_a_client_that_vanishes(std::uint64_t seed) {
    chat::room room{chat::limits{}};
    event stop;
    sim::world w(seed);
    sim::host& server = w.host("server");
    sim::host& other = w.host("a");
    server.co_spawn(serve(room, stop));
    w.run();
    [[maybe_unused]] const auto ada =
        other.spawn(client(server.address(7000), "ada\nhello\n", "never said"));
    w.after(std::chrono::microseconds(w.random().below(1000)), [&] { w.partition(server, other); });
    w.run_for(10min);
    return server.open_descriptors().size() == 1; // the acceptor's
}

TEST(ChatTutorial, NothingIsLeftOfAClientThatVanishes) {
    EXPECT_TRUE(sim::for_each_seed(200, nothing_is_left_of_a_client_that_vanishes));
}
// [/vanished]

} // namespace chat_tutorial
