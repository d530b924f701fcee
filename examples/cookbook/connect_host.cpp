// Connect to a host name: all its addresses are tried, IPv6 first (RFC 8305).
#include <coil/coil.hpp>

#include <cstdio>
#include <system_error>

using namespace coil;
using namespace std::chrono_literals;

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    const std::uint16_t port = ac.local_address().port();
    try {
        const net::socket s = co_await net::connect("localhost", port, 2s);
        std::printf("connected to %s\n", s.peer_address().ip().c_str());
    } catch (const std::system_error& e) {
        std::printf("%s\n", e.what()); // names the host, the port, and why each attempt failed
    }
}

int main() { coil::run(co_main()); }
