// Receive datagrams and answer them (UDP).
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<> answer_one(net::socket& s) {
    char buf[1500];
    auto [n, from] = co_await s.recv_from(buf);
    if (n >= 0) {
        co_await s.send_to({buf, n}, from);
    }
}

task<> co_main() {
    net::socket server = net::socket::create_udp();
    server.bind("127.0.0.1:0").value();
    co_spawn(answer_one(server));

    net::socket client = net::socket::create_udp();
    co_await client.connect(server.local_endpoint());
    char buf[1500];
    co_await client.send("ping");
    const int n = co_await client.recv(buf);
    std::printf("%.*s\n", n, buf);
}

int main() { coil::run(co_main()); }
