// Measures how many calls per second the simulator executes, and the cost of an idle hour.
//
//     operations [CONNECTIONS] [ROUNDS]

#include <coil/coil.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

namespace {

task<> session(net::socket peer) {
    char buf[64];
    int n = co_await peer.recv(buf);
    while (n > 0) {
        n = co_await (peer.send("+OK\r\n") && peer.recv(buf));
    }
}

task<> serve(std::uint16_t port) {
    net::acceptor acceptor{net::inet_address(port)};
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

task<> ask(net::inet_address server, int rounds) {
    net::socket s = net::socket::create_tcp();
    if (const int error = co_await s.connect(server); error < 0) {
        co_return;
    }
    char buf[64];
    for (int i = 0; i < rounds; ++i) {
        if (const int n = co_await (s.send("PING\r\n") && s.recv(buf)); n <= 0) {
            co_return;
        }
    }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(int connections, int rounds, bool faults) {
    sim::world_options options;
    if (faults) {
        options.faults = sim::fault_plan::timing();
    }
    sim::world w(1, options);
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(serve(6379));
    for (int i = 0; i < connections; ++i) {
        client.co_spawn(ask(server.address(6379), rounds));
    }
    const auto begin = std::chrono::steady_clock::now();
    w.run();
    const double took = seconds_since(begin);
    std::printf("%d connections%s: %.2f million calls a second (%llu calls, %llu faults, %.2f s; "
                "%.3f s of the world)\n",
                connections, faults ? " with faults" : "",
                static_cast<double>(w.operations()) / took / 1e6,
                static_cast<unsigned long long>(w.operations()),
                static_cast<unsigned long long>(w.faults()), took,
                std::chrono::duration<double>(w.now().time_since_epoch()).count() - 1);
}

task<> stay_connected(net::inet_address server) {
    net::socket s = net::socket::create_tcp();
    co_await s.connect(server);
    char buf[16];
    co_await s.recv(buf);
}

void measure_idle() {
    sim::world w{1};
    sim::host& server = w.host("server");
    sim::host& client = w.host("client");
    server.co_spawn(serve(6379));
    for (int i = 0; i < 100; ++i) {
        client.co_spawn(stay_connected(server.address(6379)));
    }
    const auto begin = std::chrono::steady_clock::now();
    w.run_for(1h);
    std::printf("an hour of 100 idle connections: %.6f s\n", seconds_since(begin));
}

} // namespace

int main(int argc, char** argv) {
    const int connections = argc > 1 ? std::atoi(argv[1]) : 50;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 10'000;
    measure(1, rounds * connections / 4, false);
    measure(connections, rounds, false);
    measure(connections, rounds, true);
    measure_idle();
}
