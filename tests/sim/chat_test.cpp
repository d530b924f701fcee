// Step 7 of the tutorial: the chat server in simulated worlds.

#include "tutorial/chat.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

namespace chat_tutorial {

using namespace coil;
using namespace std::chrono_literals;

// [client]
/// Connects, says its name and then `text`, and returns what it has read until `last` was in it, or
/// the connection has ended.
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

/// Sockets are made inside of a task of their host.
task<> serve(chat::room& room, event& stop) {
    co_await chat::serve(net::acceptor{net::inet_address{7000}}, room, stop);
}
// [/client]

// [hears]
bool all_clients_hear(std::uint64_t seed) {
    chat::room room{chat::limits{}}; // what tasks refer to is declared before the world
    event stop;
    sim::world_options options;
    options.faults = sim::fault_plan::timing(); // what a correct program does not notice
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

/// A client that sends many lines at once does not fill the channels of those that read.
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

// [vanished]
/// A client's network fails: the server notices by its limits, and keeps nothing of the client.
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
