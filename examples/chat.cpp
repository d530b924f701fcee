// A chat room: each line that a client sends goes to all clients.
//
//     chat 7000
//     chat 7000 --queue 1000 --send 5000 --drop-lines 1
//
// It shows what to do about clients that read too slowly. Each client has a bounded queue of lines,
// so the other clients do not wait for a slow one. There are two policies for a full queue: drop
// the client (the default), or drop the lines and tell the client how many it has missed. Each
// write to a client has a time limit as well. On SIGUSR1 and at the end the program
// prints how often each limit was reached. The tutorial builds a chat server step by step; this one
// runs on net::serve, on all processors.

#include "server.hpp"

#include <coil/coil.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct limits {
    std::size_t clients = 0;               // 0: as many as the descriptor limit allows
    std::size_t line_length = 512;         // in bytes
    std::size_t queue = 1000;              // lines that wait for a client
    std::size_t send_buffer = 65536;       // bytes that wait for it in the kernel
    std::size_t drop_lines = 0;            // 1: drop lines instead of the client
    std::chrono::milliseconds line = 300s; // until a client has sent a whole line
    std::chrono::milliseconds send = 5s;   // until a client has received its lines
    std::chrono::milliseconds grace = 2s;  // for all clients when the server stops
};

struct counters {
    std::atomic<std::uint64_t> lines = 0;
    std::atomic<std::uint64_t> dropped_lines = 0;
    std::atomic<std::uint64_t> queue_full = 0;
    std::atomic<std::uint64_t> reader_too_slow = 0;
    std::atomic<std::uint64_t> line_too_slow = 0;
    std::atomic<std::uint64_t> line_too_long = 0;
};

/// The part of a client that other clients use: the queue of lines to be sent to the client. A line
/// is in all queues, so the queues share it.
struct member {
    explicit member(std::size_t size) : lines(size) {}

    channel<std::shared_ptr<const std::string>> lines;
    std::atomic<std::uint64_t> missed = 0;
    event dropped;
};

/// The clients of all contexts. Its functions may be called from any thread; none of them waits.
class room {
public:
    explicit room(const limits& limit) : limit_(limit) {}

    [[nodiscard]] const limits& limit() const noexcept { return limit_; }
    [[nodiscard]] counters& count() noexcept { return count_; }

    void say(std::string line) {
        const auto shared = std::make_shared<const std::string>(std::move(line));
        ++count_.lines;
        const std::lock_guard lock(mutex_);
        for (auto each = members_.begin(); each != members_.end();) {
            member& to = **each++;
            if (to.lines.try_send(shared)) {
                continue;
            }
            if (limit_.drop_lines != 0) {
                ++to.missed;
                ++count_.dropped_lines;
            } else {
                ++count_.queue_full;
                members_.erase(&to);
                to.dropped.set();
            }
        }
    }

    void enter(member& m) {
        const std::lock_guard lock(mutex_);
        members_.insert(&m);
    }
    void leave(member& m) {
        const std::lock_guard lock(mutex_);
        members_.erase(&m);
    }

private:
    const limits limit_;
    counters count_;
    std::mutex mutex_; // never held across a co_await
    std::set<member*> members_;
};

class membership {
public:
    explicit membership(room& of) : room_(of), member_(of.limit().queue) { room_.enter(member_); }
    membership(const membership&) = delete;
    membership& operator=(const membership&) = delete;
    ~membership() { room_.leave(member_); }

    [[nodiscard]] member& get() noexcept { return member_; }

private:
    room& room_;
    member member_;
};

/// Returns after the client's last line, or throws.
task<> read_lines(net::socket& peer, room& chat) {
    buffered_reader from(peer, 1024);
    auto lines = from.lines(chat.limit().line_length);
    while (const auto line = co_await timeout(lines.next(), chat.limit().line)) {
        chat.say(std::string(*line) + "\n");
        co_await yield(); // lets the writers send the line
    }
}

/// Waits for a line. Returns it together with the lines queued behind it, up to 16 KiB.
task<std::string> next_lines(member& self) {
    std::string text;
    for (auto line = co_await self.lines.recv(); line; line = self.lines.try_recv()) {
        text += **line;
        if (text.size() > 16384) {
            break;
        }
    }
    if (const std::uint64_t missed = self.missed.exchange(0); missed > 0) {
        text += "* you missed " + std::to_string(missed) + " lines\n";
    }
    co_return text;
}

/// Returns when the client does not receive its lines within the limit, or has disconnected.
task<> write_lines(net::socket& peer, member& self, room& chat) {
    int sent = 0;
    while (sent >= 0) {
        const std::string text = co_await next_lines(self);
        sent = co_await timeout(peer.send_all(text), chat.limit().send);
    }
    if (sent == -ETIMEDOUT) {
        ++chat.count().reader_too_slow;
    }
}

task<> talk(net::socket& peer, room& chat) {
    membership self(chat);
    try {
        const auto ended = co_await when_any(
            read_lines(peer, chat), write_lines(peer, self.get(), chat), self.get().dropped.wait());
        if (ended.index != 0) {
            (void)peer.set_linger(0s); // the kernel discards unsent data immediately
        }
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::timed_out) {
            ++chat.count().line_too_slow;
        } else if (e.code() == std::errc::message_size) {
            ++chat.count().line_too_long;
        }
        // Otherwise the connection was reset, or the server is stopping.
    }
}

task<> session(net::socket peer, inplace_stop_token stopping, room& chat) {
    // The bytes in the send buffer also wait for the client.
    (void)peer.set_send_buffer_size(static_cast<int>(chat.limit().send_buffer));
    co_await with_stop_token(talk(peer, chat), stopping);
    if (stopping.stop_requested()) {
        co_await timeout(peer.send("* the server stops\n", MSG_DONTWAIT), 1s);
    }
}

std::string metrics_of(const counters& count, const net::serve_meter& meter) {
    return to_string(meter.metrics()) + "lines: " + std::to_string(count.lines) +
           ", dropped lines: " + std::to_string(count.dropped_lines) +
           ", dropped clients: " + std::to_string(count.queue_full) +
           ", reader too slow: " + std::to_string(count.reader_too_slow) +
           ", line too slow: " + std::to_string(count.line_too_slow) +
           ", line too long: " + std::to_string(count.line_too_long);
}

/// The handler of net::serve: one session for each connection.
struct visits {
    room& chat;
    COIL_CORO_WRAPPER task<> operator()(net::socket peer, inplace_stop_token stopping) const {
        return session(std::move(peer), stopping, chat);
    }
};

} // namespace

int main(int argc, char** argv) try {
    limits limit;
    std::vector<std::string> words;
    std::uint16_t port = 0;
    if (!example::read_options(argc, argv,
                               {{"--clients", limit.clients},
                                {"--line-length", limit.line_length},
                                {"--queue", limit.queue},
                                {"--send-buffer", limit.send_buffer},
                                {"--drop-lines", limit.drop_lines},
                                {"--line", limit.line},
                                {"--send", limit.send},
                                {"--grace", limit.grace}},
                               words) ||
        words.size() != 1 || !example::parse_number(words[0], port)) {
        std::fprintf(stderr, "usage: chat PORT [--clients N] [--line-length BYTES] [--queue LINES] "
                             "[--send-buffer BYTES] [--drop-lines 0|1] [--line MS] [--send MS] "
                             "[--grace MS]\n");
        return 2;
    }
    const example::server_signals signals; // before the runtime starts threads
    runtime rt;
    if (limit.clients == 0) {
        limit.clients = example::connections_for(1, 32 + rt.size() * 12);
    }
    room chat(limit);
    const auto meter = std::make_shared<net::serve_meter>();
    auto server = net::serve(rt, port, visits{chat},
                             {.max_connections = limit.clients,
                              .grace = limit.grace,
                              .hard_deadline = 1s,
                              .on_listening = example::say_where,
                              .meter = meter});
    rt.block_on(example::run_until_stopped(std::move(server), signals,
                                           [&] { return metrics_of(chat.count(), *meter); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "chat: %s\n", e.what());
    return 1;
}
