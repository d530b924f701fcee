// Connect with a deadline.
#include <coil/coil.hpp>

#include <cerrno>
#include <cstdio>

using namespace coil;
using namespace std::chrono_literals;

/// Returns a connected socket, or one that converts to false and whose error() is the reason.
task<net::socket> connect(net::inet_address address, std::chrono::milliseconds limit) {
    net::socket s = net::socket::create_tcp(address.family());
    const int r = co_await timeout(s.connect(address), limit);
    if (r < 0) { // -ETIMEDOUT: the limit has expired
        co_return net::socket(r);
    }
    co_return s;
}

task<> co_main() {
    // The acceptor's backlog has room for one connection: the second attempt gets no answer.
    net::acceptor ac(net::inet_address("127.0.0.1", 0), {.backlog = 0});
    const net::socket first = co_await connect(ac.local_address(), 50ms);
    const net::socket second = co_await connect(ac.local_address(), 50ms);
    for (const net::socket* s : {&first, &second}) {
        std::printf("%s\n", *s ? "connected" : s->error().message().c_str());
    }
}

int main() { coil::run(co_main()); }
