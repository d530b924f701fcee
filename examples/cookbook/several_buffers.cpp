// Send a header and a body with one call, without copying them into one buffer.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

#include <arpa/inet.h>

using namespace coil;

task<io_result> send_message(net::socket& to, const std::string& body) {
    const std::uint32_t size = htonl(static_cast<std::uint32_t>(body.size()));
    const const_buffer parts[] = {{&size, sizeof size}, body};
    co_return co_await writev_all(to, parts);
}

task<> co_main() {
    auto [ours, theirs] = net::socket::pair();
    (co_await send_message(ours, "a message")).value();

    std::uint32_t size = 0;
    char body[100];
    const mutable_buffer parts[] = {{&size, sizeof size}, body};
    const int n = co_await theirs.readv_some(parts); // fills the first buffer, then the second
    std::printf("%d bytes, %u of them are the body: %.*s\n", n, ntohl(size), n - 4, body);
}

int main() { coil::run(co_main()); }
