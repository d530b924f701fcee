// Listen and connect on a Unix socket.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<> co_main() {
    const net::unix_address where("cookbook.sock");
    net::acceptor ac{where}; // creates the socket file, and removes it at the end
    net::socket client = net::socket::create_unix();
    (co_await client.connect(where)).value();

    net::socket peer = co_await ac.accept();
    co_await client.send_all("hello");
    char buf[5];
    const int n = co_await peer.recv_all(buf);
    std::printf("%.*s\n", n, buf);
}

int main() { coil::run(co_main()); }
