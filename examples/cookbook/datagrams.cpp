// Receive datagrams and answer them (UDP).
#include <coil/coil.hpp>

#include <cstdio>

#include <sys/socket.h>

using namespace coil;

task<> answer_one(net::socket& s) {
    char buf[1500];
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    const int n = co_await io::recvfrom(s.native_handle(), buf, 0, address, &length);
    if (n >= 0) {
        co_await io::sendto(s.native_handle(), {buf, n}, 0, address, length);
    }
}

task<> co_main() {
    net::socket server = net::socket::create_udp();
    (co_await server.bind(net::inet_address("127.0.0.1", 0))).value();
    co_spawn(answer_one(server));

    net::socket client = net::socket::create_udp();
    co_await client.connect(server.local_address());
    char buf[1500];
    co_await client.send("ping");
    const int n = co_await client.recv(buf);
    std::printf("%.*s\n", n, buf);
}

int main() { coil::run(co_main()); }
