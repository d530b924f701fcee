// Messages that are prefixed with their length.
#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <arpa/inet.h>

using namespace coil;

task<bool> send_message(net::socket& to, const std::string& text) {
    const std::uint32_t size = htonl(static_cast<std::uint32_t>(text.size()));
    // One submission; the second send does not start if the first fails.
    co_return co_await (to.send({&size, sizeof size}) && to.send(text)) >= 0;
}

task<std::optional<std::string>> receive_message(net::socket& from, std::uint32_t limit) {
    std::uint32_t size = 0;
    if (co_await from.recv_all({&size, sizeof size}) != sizeof size || ntohl(size) > limit) {
        co_return std::nullopt;
    }
    std::string text(ntohl(size), '\0');
    const int n = co_await from.recv_all(text);
    co_return n == static_cast<int>(text.size()) ? std::optional(text) : std::nullopt;
}

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket a = net::socket::create_tcp();
    co_await a.connect(ac.local_address());
    net::socket b = co_await ac.accept();
    co_await send_message(a, "a message");
    const auto got = co_await receive_message(b, 1000);
    std::printf("%s\n", got ? got->c_str() : "none");
}

int main() { coil::run(co_main()); }
