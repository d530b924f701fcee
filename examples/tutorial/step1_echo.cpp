// Step 1: a server that sends back what it receives.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdlib>
#include <utility>

using namespace coil;

task<> session(net::socket peer) {
    char buf[4096];
    int n = 0;
    while ((n = co_await peer.recv(buf)) > 0) {
        co_await peer.send_all({buf, n});
    }
}

task<> server(std::uint16_t port) {
    net::acceptor ac{net::inet_address{port}};
    while (net::socket peer = co_await ac.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

int main(int argc, char** argv) {
    const int port = argc > 1 ? std::atoi(argv[1]) : 7000;
    coil::run(server(static_cast<std::uint16_t>(port)));
}
