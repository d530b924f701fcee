// Step 2: a server that answers lines.
#include <coil/coil.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

using namespace coil;

// [line_reader]
class line_reader {
public:
    explicit line_reader(net::socket& from) noexcept : from_(from) {}

    /// The next line without its '\n', or nothing at the end of the stream.
    task<std::optional<std::string>> next() {
        std::size_t end = 0;
        while ((end = received_.find('\n')) == std::string::npos) {
            char buf[1024];
            const int n = co_await from_.recv(buf);
            if (n <= 0) {
                co_return std::nullopt;
            }
            received_.append(buf, static_cast<std::size_t>(n));
        }
        std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        co_return line;
    }

private:
    net::socket& from_;
    std::string received_; // received, and not yet returned by next()
};
// [/line_reader]

// [session]
task<> session(net::socket peer) {
    line_reader lines(peer);
    co_await peer.send_all("What is your name?\n");
    const std::optional<std::string> name = co_await lines.next();
    if (name) {
        co_await peer.send_all("Hello " + *name + "\n");
    }
}
// [/session]

task<> server(std::uint16_t port) {
    net::acceptor ac{net::inet_address{port}};
    while (net::socket peer = co_await ac.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

int main(int argc, char** argv) {
    const int port = argc > 1 ? std::atoi(argv[1]) : 7000;
    coil::run(server(static_cast<std::uint16_t>(port)));
}
