// Step 4: limits and deadlines.
#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

// [limits]
struct limits {
    std::size_t clients = 100;            // at a time
    std::size_t line_length = 512;        // in bytes
    std::size_t queued_lines = 64;        // for a client that reads slowly
    std::chrono::milliseconds idle = 60s; // until a client has sent a line
    std::chrono::milliseconds send = 5s;  // until a line has been sent to a client
    std::chrono::milliseconds pace = 1ms; // between two lines of the room
};
// [/limits]

// [line_reader]
class line_reader {
public:
    line_reader(net::socket& from, std::size_t longest) noexcept : from_(from), longest_(longest) {}

    /// The next line without its '\n', or nothing if the stream has ended or the line is too long.
    task<std::optional<std::string>> next() {
        std::size_t end = 0;
        while ((end = received_.find('\n')) == std::string::npos && received_.size() <= longest_) {
            char buf[1024];
            const int n = co_await from_.recv(buf);
            if (n <= 0) {
                co_return std::nullopt;
            }
            received_.append(buf, static_cast<std::size_t>(n));
        }
        if (end > longest_) {
            co_return std::nullopt;
        }
        std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        co_return line;
    }

private:
    net::socket& from_;
    std::size_t longest_;
    std::string received_; // received, and not yet returned by next()
};
// [/line_reader]

using line_queue = channel<std::string>;

// [room]
struct room {
    limits limit;
    std::vector<line_queue*> members = {};
    mutex floor = {}; // held by the client that speaks

    task<> say(std::string line) {
        const auto speaking = co_await floor.lock_guard();
        for (line_queue* const member : members) {
            if (!member->try_send(line)) {
                member->close(); // full: this client reads too slowly
            }
        }
        co_await sleep_for(limit.pace); // meanwhile the writers send the line
    }
};

/// Adds a client's channel to the room, and removes it at the end of the session.
class membership {
public:
    explicit membership(room& chat) : chat_(chat), lines_(chat.limit.queued_lines) {
        chat_.members.push_back(&lines_);
    }
    membership(const membership&) = delete;
    membership& operator=(const membership&) = delete;
    ~membership() { std::erase(chat_.members, &lines_); }

    [[nodiscard]] line_queue& lines() noexcept { return lines_; }

private:
    room& chat_;
    line_queue lines_;
};
// [/room]

// [session]
task<> read_lines(net::socket& peer, room& chat) {
    line_reader lines(peer, chat.limit.line_length);
    const auto name = co_await timeout(lines.next(), chat.limit.idle); // throws timed_out
    if (!name) {
        co_return;
    }
    while (const auto line = co_await timeout(lines.next(), chat.limit.idle)) {
        co_await chat.say(*name + ": " + *line + "\n");
    }
}

task<> write_lines(net::socket& peer, line_queue& lines, const limits& limit) {
    while (const std::optional<std::string> line = co_await lines.recv()) {
        if (co_await timeout(peer.send_all(*line), limit.send) < 0) { // too slow: -ETIMEDOUT
            co_return;
        }
    }
}

task<> session(net::socket peer, room& chat) {
    if (chat.members.size() >= chat.limit.clients) {
        co_await timeout(peer.send("* the room is full\n"), chat.limit.send);
        co_return;
    }
    membership member(chat);
    try {
        co_await when_any(read_lines(peer, chat), write_lines(peer, member.lines(), chat.limit));
    } catch (const std::exception&) {
        co_return; // a client that is too slow ends only its own session
    }
}
// [/session]

// [server]
task<> server(std::uint16_t port, limits limit) {
    room chat{limit};
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
    limits limit;
    if (argc > 2) {
        limit.clients = static_cast<std::size_t>(std::atoi(argv[2]));
    }
    if (argc > 3) {
        limit.idle = std::chrono::milliseconds(std::atoi(argv[3]));
    }
    coil::run(server(static_cast<std::uint16_t>(port), limit));
}
