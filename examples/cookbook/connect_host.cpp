// Connect to a host name: try its addresses one after the other.
#include <coil/coil.hpp>

#include <cerrno>
#include <cstdio>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

task<net::socket> connect(std::string host, std::uint16_t port) {
    int last = -EADDRNOTAVAIL;
    for (const net::inet_address& address : co_await net::resolve(host, port)) {
        net::socket s = net::socket::create_tcp(address.family());
        last = co_await timeout(s.connect(address), 2s);
        if (last == 0) {
            co_return s;
        }
    }
    co_return net::socket(last);
}

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    const net::socket s = co_await connect("localhost", ac.local_address().port());
    std::printf("%s\n", s ? "connected" : s.error().message().c_str());
}

int main() { coil::run(co_main()); }
