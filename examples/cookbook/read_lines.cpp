// Read lines from a socket.
#include <coil/coil.hpp>

#include <cstdio>
#include <optional>
#include <string>

using namespace coil;

/// The next line without its '\n'; nothing at the end, on an error, or after 4096 bytes.
/// `received` holds what has come and was not returned yet.
task<std::optional<std::string>> read_line(net::socket& from, std::string& received) {
    std::size_t end = 0;
    while ((end = received.find('\n')) == std::string::npos) {
        char buf[512];
        const int n = co_await from.recv(buf);
        if (n <= 0 || received.size() + sizeof buf > 4096) {
            co_return std::nullopt;
        }
        received.append(buf, static_cast<std::size_t>(n));
    }
    std::string line = received.substr(0, end);
    received.erase(0, end + 1);
    co_return line;
}

task<> co_main() {
    net::acceptor ac{net::inet_address("127.0.0.1", 0)};
    net::socket client = net::socket::create_tcp();
    co_await client.connect(ac.local_address());
    co_await client.send_all("one\ntwo\nthree\n");
    co_await client.close();

    net::socket peer = co_await ac.accept();
    std::string received;
    while (const auto line = co_await read_line(peer, received)) {
        std::printf("line: %s\n", line->c_str());
    }
}

int main() { coil::run(co_main()); }
