#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <cerrno>
#include <cstdio>
#include <utility>

// A peer that does not speak TLS.
coil::task<int> co_main() {
    auto [a, b] = coil::net::socket::pair();
    coil::tls::stream s{std::move(a), coil::tls::context::client()};
    co_await b.send("220 welcome\r\n");
    const int result = co_await s.handshake("example.org");
    std::printf("%s\n", s.last_error().c_str());
    co_return result == -EPROTO ? 0 : 1;
}

int main() { return coil::run(co_main()); }
