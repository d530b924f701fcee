// Read lines from a socket.
#include <coil/coil.hpp>

#include <cstdio>

using namespace coil;

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket client = net::socket::create_tcp();
    co_await client.connect(ac.local_address());
    co_await client.send_all("one\ntwo\nthree\n");
    co_await client.close();

    net::socket peer = co_await ac.accept();
    buffered_reader reader{peer};
    auto lines = reader.lines(4096); // throws std::errc::message_size beyond 4096 bytes
    while (const auto line = co_await lines.next()) {
        std::printf("line: %.*s\n", static_cast<int>(line->size()), line->data());
    }
}

int main() { coil::run(co_main()); }
