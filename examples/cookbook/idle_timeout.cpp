// Close a connection that is idle for too long.
#include <coil/coil.hpp>

#include <cerrno>
#include <cstdio>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;

task<> echo(net::socket peer, std::chrono::milliseconds idle) {
    char buf[4096];
    int n = 0;
    while ((n = co_await timeout(peer.recv(buf), idle)) > 0) { // one limit for each receive
        if (co_await timeout(peer.send_all({buf, n}), 5s) < 0) {
            co_return;
        }
    }
    if (n == -ETIMEDOUT) {
        std::printf("idle: closed\n");
    }
}

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket client = net::socket::create_tcp();
    co_await client.connect(ac.local_address());
    auto session = spawn(echo(co_await ac.accept(), 50ms));
    char buf[16];
    co_await client.send_all("hello");
    const int n = co_await client.recv(buf);
    std::printf("%.*s\n", n, buf);
    co_await session;
}

int main() { coil::run(co_main()); }
