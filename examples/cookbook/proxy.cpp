// A TCP proxy: copy bytes in both directions until both streams have ended.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<> proxy(net::socket client, net::endpoint target) {
    net::socket server = net::socket::create_tcp(target.family());
    if (co_await server.connect(target) == 0) {
        co_await duplex(client, server);
    }
}

task<> echo(net::acceptor& ac) {
    net::socket peer = co_await ac.accept();
    co_await copy(peer, peer);
}

task<> co_main() {
    net::acceptor front{net::inet_address("127.0.0.1", 0)}, back{net::inet_address("127.0.0.1", 0)};
    co_spawn(echo(back));
    net::socket client = net::socket::create_tcp();
    co_await client.connect(front.local_address());
    co_spawn(proxy(co_await front.accept(), back.local_endpoint()));
    char reply[5];
    co_await client.send_all("hello");
    std::printf("%.*s\n", int(co_await client.recv_all(reply)), reply);
}

int main() { coil::run(co_main()); }
