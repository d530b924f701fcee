// A gateway to redis: any number of clients share a few connections.
//
//     redis_pool 7379 localhost 6379 --connections 4
//     printf 'SET color blue\r\nGET color\r\n' | nc -N localhost 7379
//
// A client sends inline commands, one per line, and receives redis' answers. pool.hpp is the client
// of redis: a pool of connections with pipelined commands, a limit on the number of waiting
// commands, a deadline for each command, and reconnecting with growing delays. If a command cannot
// be executed, its client gets an error, immediately or at the deadline, so clients do not pile up
// behind a slow redis. On SIGUSR1 and at the end the program prints how often each limit was
// reached.

#include "../server.hpp"
#include "pool.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct limits {
    std::size_t clients = 0;               // 0: as many as the descriptor limit allows
    std::size_t line_length = 4096;        // in bytes
    std::chrono::milliseconds line = 300s; // until a client has sent a whole line
    std::chrono::milliseconds send = 5s;   // until a client has received an answer
    std::chrono::milliseconds grace = 2s;  // for commands in progress at a stop
};

/// "GET x" in redis' protocol: "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n"; empty if the line has no word.
std::string encode(std::string_view line) {
    std::string words;
    std::size_t count = 0;
    while (true) {
        const std::size_t begin = line.find_first_not_of(" \t");
        if (begin == std::string_view::npos) {
            break;
        }
        line.remove_prefix(begin);
        const std::string_view word = line.substr(0, line.find_first_of(" \t"));
        line.remove_prefix(word.size());
        words += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
        ++count;
    }
    return count == 0 ? "" : "*" + std::to_string(count) + "\r\n" + words;
}

task<std::string> answer_to(std::string command, redis::pool& pool) {
    try {
        co_return co_await pool.execute(std::move(command));
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::operation_canceled) {
            throw;
        }
        co_return "-GATEWAY " + e.code().message() + "\r\n";
    }
}

using reader = buffered_reader<net::socket&>;

task<std::optional<std::string>> next_command(reader& from, const limits& limit) {
    const auto line = co_await timeout(from.lines(limit.line_length).next(), limit.line);
    co_return line ? std::optional(encode(*line)) : std::nullopt;
}

/// When the server stops, a command in progress is still answered.
task<> session(net::socket peer, inplace_stop_token stopping, redis::pool& pool,
               const limits& limit) {
    reader from(peer, 1024);
    try {
        while (auto command = co_await with_stop_token(next_command(from, limit), stopping)) {
            if (command->empty()) {
                continue;
            }
            const std::string answer = co_await answer_to(std::move(*command), pool);
            (co_await timeout(peer.send_all(answer), limit.send)).value();
        }
    } catch (const std::system_error&) {
        // The client was too slow, its line too long, or its connection reset; or the server stops.
        (void)peer.set_linger(0s);
    }
}

std::string metrics_of(const redis::counters& count, const net::serve_meter& meter) {
    return to_string(meter.metrics()) + "commands: " + std::to_string(count.answered) +
           " answered, " + std::to_string(count.refused) + " refused, " +
           std::to_string(count.timed_out) + " timed out, " + std::to_string(count.lost) +
           " lost; connections to redis: " + std::to_string(count.connected) + " made, " +
           std::to_string(count.failures) + " broken";
}

} // namespace

int main(int argc, char** argv) try {
    limits limit;
    redis::limits of_pool;
    std::vector<std::string> words;
    std::uint16_t port = 0;
    std::uint16_t redis_port = 0;
    if (!example::read_options(argc, argv,
                               {{"--connections", of_pool.connections},
                                {"--waiters", of_pool.waiters},
                                {"--depth", of_pool.depth},
                                {"--command", of_pool.command},
                                {"--connect", of_pool.connect},
                                {"--back-off", of_pool.back_off},
                                {"--longest-wait", of_pool.longest_wait},
                                {"--clients", limit.clients},
                                {"--line", limit.line},
                                {"--send", limit.send},
                                {"--grace", limit.grace}},
                               words) ||
        words.size() != 3 || !example::parse_number(words[0], port) ||
        !example::parse_number(words[2], redis_port) || of_pool.connections == 0) {
        std::fprintf(stderr,
                     "usage: redis_pool PORT REDIS_HOST REDIS_PORT [--connections N] "
                     "[--waiters N] [--depth N] [--command MS] [--connect MS] [--back-off MS] "
                     "[--longest-wait MS] [--clients N] [--line MS] [--send MS] [--grace MS]\n");
        return 2;
    }
    if (limit.clients == 0) {
        limit.clients = example::connections_for(1, 48 + of_pool.connections * 2);
    }
    const example::server_signals signals; // before the runtime starts threads
    runtime rt(1);                         // one context, so the pool needs no locks
    redis::pool pool(words[1], redis_port, of_pool);
    const auto meter = std::make_shared<net::serve_meter>();
    auto server = net::serve(rt, port,
                             [&](net::socket peer, inplace_stop_token stopping) {
                                 return session(std::move(peer), stopping, pool, limit);
                             },
                             {.max_connections = limit.clients,
                              .grace = limit.grace,
                              .hard_deadline = 1s,
                              .on_listening = example::say_where,
                              .meter = meter});
    auto main = [](task<> serving, const example::server_signals& until, redis::pool& connections,
                   std::function<std::string()> metrics) -> task<> {
        // The pool ends after the server, whose clients use it.
        co_await when_any(example::run_until_stopped(std::move(serving), until, std::move(metrics)),
                          connections.run());
    };
    rt.block_on(
        main(std::move(server), signals, pool, [&] { return metrics_of(pool.count(), *meter); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "redis_pool: %s\n", e.what());
    return 1;
}
