// Step 3: a chat. What a client says goes to all clients.
#include <coil/coil.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace coil;

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

// [room]
/// Lines that wait to be sent to a client.
using line_queue = channel<std::string>;

struct room {
    std::vector<line_queue*> members;

    void say(const std::string& line) {
        for (line_queue* const member : members) {
            member->try_send(line); // does not wait
        }
    }
};
// [/room]

// [session]
task<> read_lines(net::socket& peer, room& chat) {
    line_reader lines(peer);
    const std::optional<std::string> name = co_await lines.next();
    // Without a name the stream has ended, so there is no line either.
    while (const std::optional<std::string> line = co_await lines.next()) {
        chat.say(*name + ": " + *line + "\n");
    }
}

task<> write_lines(net::socket& peer, line_queue& lines) {
    while (const std::optional<std::string> line = co_await lines.recv()) {
        if (co_await peer.send_all(*line) < 0) {
            co_return;
        }
    }
}

task<> session(net::socket peer, room& chat) {
    line_queue lines{unbounded};
    chat.members.push_back(&lines);
    co_await when_any(read_lines(peer, chat), write_lines(peer, lines));
    std::erase(chat.members, &lines);
}
// [/session]

// [server]
task<> server(std::uint16_t port) {
    room chat;
    scope sessions;
    net::acceptor ac{net::inet_address{port}};
    while (net::socket peer = co_await ac.accept()) {
        sessions.spawn(session(std::move(peer), chat));
    }
    co_await sessions.join();
}
// [/server]

int main(int argc, char** argv) {
    const int port = argc > 1 ? std::atoi(argv[1]) : 7000;
    coil::run(server(static_cast<std::uint16_t>(port)));
}
