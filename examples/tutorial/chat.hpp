// Steps 5 to 7: the chat server. step5_stop.cpp and step6_cores.cpp run it; tests/sim/chat_test.cpp
// tests it in a simulated world.
#pragma once

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace chat {

using namespace coil;
using namespace std::chrono_literals;

struct limits {
    std::size_t clients = 1000;            // at a time
    std::size_t line_length = 512;         // in bytes
    std::size_t queued_lines = 64;         // for a client that reads slowly
    std::chrono::milliseconds idle = 300s; // until a client has sent a line
    std::chrono::milliseconds send = 5s;   // until a line has been sent to a client
    std::chrono::milliseconds pace = 1ms;  // between two lines of the room
    std::chrono::milliseconds linger = 1s; // until the client has closed its side
    std::chrono::milliseconds grace = 5s;  // for clients when the server stops
};

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

using line_queue = channel<std::string>;

// [room]
/// The clients of all contexts. Its functions may be called from any thread.
class room {
public:
    explicit room(const limits& limit) : limit_(limit) {}

    [[nodiscard]] const limits& limit() const noexcept { return limit_; }

    /// Returns false if the room is full or closed.
    bool join(line_queue& lines) {
        const std::lock_guard lock(mutex_);
        if (closed_ || members_.size() >= limit_.clients) {
            return false;
        }
        members_.push_back(&lines);
        return true;
    }

    void leave(line_queue& lines) {
        const std::lock_guard lock(mutex_);
        std::erase(members_, &lines);
    }

    /// One client speaks at a time, and the writers send its line before the next one speaks.
    task<> say(std::string line) {
        const auto speaking = co_await floor_.lock_guard();
        {
            const std::lock_guard lock(mutex_);
            put_into_queues(line);
        }
        co_await sleep_for(limit_.pace);
    }

    /// Says goodbye, once. Each session ends when it has sent what is queued.
    void close() {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(closed_, true)) {
            put_into_queues("* the server stops\n");
            for (line_queue* const member : members_) {
                member->close();
            }
        }
    }

private:
    /// Precondition: mutex_ is locked.
    void put_into_queues(const std::string& line) {
        for (line_queue* const member : members_) {
            if (!member->try_send(line)) {
                member->close(); // full: this client reads too slowly
            }
        }
    }

    const limits limit_;
    mutex floor_;      // held by the client that speaks
    std::mutex mutex_; // never held across a co_await
    std::vector<line_queue*> members_;
    bool closed_ = false;
};
// [/room]

/// Adds a client's channel to the room, and removes it at the end of the session.
class membership {
public:
    explicit membership(room& chat)
        : chat_(chat), lines_(chat.limit().queued_lines), joined_(chat.join(lines_)) {}
    membership(const membership&) = delete;
    membership& operator=(const membership&) = delete;
    ~membership() { chat_.leave(lines_); }

    [[nodiscard]] bool joined() const noexcept { return joined_; }
    [[nodiscard]] line_queue& lines() noexcept { return lines_; }

private:
    room& chat_;
    line_queue lines_;
    bool joined_;
};

inline task<> read_lines(net::socket& peer, room& chat) {
    line_reader lines(peer, chat.limit().line_length);
    const auto idle = chat.limit().idle;
    const auto name = co_await timeout(lines.next(), idle); // throws timed_out
    if (!name) {
        co_return;
    }
    co_await chat.say("* " + *name + " is here\n");
    while (const auto line = co_await timeout(lines.next(), idle)) {
        co_await chat.say(*name + ": " + *line + "\n");
    }
    co_await chat.say("* " + *name + " has left\n");
}

inline task<> write_lines(net::socket& peer, line_queue& lines, const limits& limit) {
    while (const std::optional<std::string> line = co_await lines.recv()) {
        if (co_await timeout(peer.send_all(*line), limit.send) < 0) { // too slow: -ETIMEDOUT
            co_return;
        }
    }
}

// [session]
/// Ends the connection so that the client receives all that was sent. (close() alone would reset
/// the connection if the client has sent something that was not read.)
inline task<> hang_up(net::socket& peer) {
    co_await peer.shutdown_write();
    char unread[512];
    while (co_await peer.recv(unread) > 0) {
    }
}

inline task<> session(net::socket peer, room& chat) {
    membership member(chat);
    try {
        if (member.joined()) {
            co_await when_any(read_lines(peer, chat),
                              write_lines(peer, member.lines(), chat.limit()));
        } else {
            co_await timeout(peer.send("* the room is full\n"), chat.limit().send);
        }
        co_await timeout(hang_up(peer), chat.limit().linger);
    } catch (const std::exception&) {
        co_return; // a client that is too slow ends only its own session
    }
}
// [/session]

// [serve]
/// The acceptor is a parameter by value: the port is closed when this has ended.
inline task<> accept_all(net::acceptor ac, scope& sessions, room& chat) {
    for (;;) {
        net::socket peer = co_await ac.accept();
        if (!peer) {
            throw std::system_error(peer.error(), "accept");
        }
        sessions.spawn(session(std::move(peer), chat));
    }
}

/// Serves until `stop` is set. Then it accepts no more clients, and lets each session send what is
/// queued for its client. Sessions that have not ended after the grace period are cancelled.
inline task<> serve(net::acceptor ac, room& chat, event& stop) {
    scope sessions;
    co_await when_any(accept_all(std::move(ac), sessions, chat), stop.wait());
    chat.close();
    try {
        co_await timeout(sessions.join(), chat.limit().grace);
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw; // this task was asked to stop
        }
    }
}
// [/serve]

} // namespace chat
