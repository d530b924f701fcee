// A pool of connections to a redis server: pipelining, limits, and reconnecting.
#pragma once

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>

namespace redis {

using namespace coil;
using namespace std::chrono_literals;

struct limits {
    std::size_t connections = 4;
    std::size_t waiters = 1000;                  // commands that wait for a connection
    std::size_t depth = 32;                      // unanswered commands on a connection
    std::size_t answer_size = 1 << 20;           // the largest answer, in bytes
    std::chrono::milliseconds command = 1s;      // from execute() to the answer
    std::chrono::milliseconds connect = 1s;      // for an attempt to connect
    std::chrono::milliseconds back_off = 50ms;   // before the second attempt; then it doubles
    std::chrono::milliseconds longest_wait = 5s; // between two attempts
};

struct counters {
    std::uint64_t answered = 0;
    std::uint64_t refused = 0;   // too many commands waited
    std::uint64_t timed_out = 0; // no answer within the limit
    std::uint64_t lost = 0;      // the connection failed before the answer
    std::uint64_t connected = 0;
    std::uint64_t failures = 0; // failed connections and attempts to connect
};

using clock = std::chrono::steady_clock;

/// A command, shared by the task that waits for its answer and the connection that sends it.
struct command {
    command(std::string t, clock::time_point until) : text(std::move(t)), deadline(until) {}

    const std::string text;
    const clock::time_point deadline;
    std::string answer; // as redis sent it; empty if the connection was lost
    event done;
};

/// The connection's reference to a command. Its destructor notifies the waiting task.
class ticket {
public:
    explicit ticket(std::shared_ptr<command> of) noexcept : command_(std::move(of)) {}
    ticket(ticket&&) noexcept = default;
    ticket& operator=(ticket&&) = delete;
    ~ticket() {
        if (command_) {
            command_->done.set();
        }
    }

    [[nodiscard]] const std::string& text() const noexcept { return command_->text; }
    [[nodiscard]] clock::time_point deadline() const noexcept { return command_->deadline; }
    void answer(std::string text) noexcept { command_->answer = std::move(text); }

private:
    std::shared_ptr<command> command_;
};

/// Commands go to the connection that is free first. Everything runs on one context.
class pool {
public:
    pool(std::string host, std::uint16_t port, limits limit)
        : host_(std::move(host)), port_(port), limit_(limit) {}

    [[nodiscard]] const counters& count() const noexcept { return count_; }

    /// Sends a command: any text in redis' protocol that has one answer. Returns the answer as
    /// redis sent it, even if it is an error. Throws std::system_error with
    /// resource_unavailable_try_again if too many commands wait, timed_out, or connection_reset if
    /// the connection was lost. In the last two cases redis may have executed the command.
    task<std::string> execute(std::string text) {
        drop_expired();
        if (waiting_.size() >= limit_.waiters) {
            ++count_.refused;
            throw std::system_error(
                std::make_error_code(std::errc::resource_unavailable_try_again));
        }
        const auto asked =
            std::make_shared<command>(std::move(text), clock::now() + limit_.command);
        waiting_.emplace_back(asked);
        ready_.release();
        try {
            co_await timeout_at(asked->done.wait(), asked->deadline);
        } catch (const std::system_error& e) {
            count_.timed_out += e.code() == std::errc::timed_out ? 1 : 0;
            throw;
        }
        if (asked->answer.empty()) {
            ++count_.lost;
            throw std::system_error(std::make_error_code(std::errc::connection_reset));
        }
        ++count_.answered;
        co_return std::move(asked->answer);
    }

    /// Keeps the connections open: replaces a failed connection, with a delay that grows with each
    /// failure in a row.
    task<> run() {
        supervisor connections{{.on_failure = [this](const std::exception_ptr&, std::string_view) {
            ++count_.failures;
        }}};
        for (std::size_t i = 0; i < limit_.connections; ++i) {
            co_await connections.spawn_restarting([this] { return keep_connection(); },
                                                  {.initial_delay = limit_.back_off,
                                                   .max_delay = limit_.longest_wait,
                                                   .reset_after = 1s},
                                                  "redis connection");
        }
        co_await connections.join();
    }

private:
    using reader = buffered_reader<net::socket&>;

    /// The commands that were sent on a connection and have no answer yet.
    struct pipeline {
        explicit pipeline(std::size_t depth) : room(static_cast<std::ptrdiff_t>(depth)) {}

        counting_semaphore<> room;
        channel<ticket> commands{unbounded};
    };

    /// Connects, and runs the connection until it fails.
    task<> keep_connection() {
        net::socket server = co_await net::connect(host_, port_, limit_.connect);
        (void)server.set_no_delay(true);
        ++count_.connected;
        pipeline sent(limit_.depth);
        co_await when_any(until_failure(send_commands(server, sent)),
                          until_failure(receive_answers(server, sent)), notice_end(server));
        throw std::system_error(std::make_error_code(std::errc::connection_reset));
    }

    /// Ignores the exception: a broken connection usually fails in two of its tasks, and
    /// keep_connection() reports the failure once.
    static task<> until_failure(task<> work) {
        try {
            co_await std::move(work);
        } catch (const std::system_error&) {
            co_return;
        }
    }

    /// Drops waiting commands whose deadline has passed. All commands have the same limit, so the
    /// oldest ones expire first.
    void drop_expired() {
        while (!waiting_.empty() && waiting_.front().deadline() <= clock::now()) {
            waiting_.pop_front();
            (void)ready_.try_acquire();
        }
    }

    task<ticket> next_command() {
        while (true) {
            co_await ready_.acquire();
            drop_expired();
            if (!waiting_.empty()) { // the command may have expired meanwhile
                ticket next = std::move(waiting_.front());
                waiting_.pop_front();
                co_return next;
            }
        }
    }

    task<> send_commands(net::socket& server, pipeline& sent) {
        while (true) {
            co_await sent.room.acquire(); // first, so that a full connection takes no command
            ticket next = co_await next_command();
            const std::string text = next.text();
            sent.commands.try_send(std::move(next));
            (co_await timeout(server.send_all(text), limit_.command)).value();
        }
    }

    /// Answers arrive in the order of the commands. If an answer is late, the connection is closed,
    /// because the answer could later be taken for that of another command.
    task<> receive_answers(net::socket& server, pipeline& sent) {
        reader from(server);
        while (auto oldest = co_await sent.commands.recv()) {
            std::string answer;
            co_await timeout(read_answer(from, answer, 0), limit_.command);
            oldest->answer(std::move(answer));
            sent.room.release();
        }
    }

    /// The number in a text such as "5\r".
    static long long number_in(std::string_view text) {
        long long number = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc() || std::string_view(rest, end) != "\r") {
            throw std::system_error(std::make_error_code(std::errc::protocol_error));
        }
        return number;
    }

    /// Appends one answer: a line; after "$5" also five bytes, after "*3" also three answers.
    task<> read_answer(reader& from, std::string& answer, int depth) {
        const auto line = co_await from.read_until('\n');
        if (!line || line->empty() || depth > 8) {
            throw std::system_error(std::make_error_code(std::errc::protocol_error));
        }
        const char type = line->front();
        answer.append(*line).append("\n");
        if (type != '$' && type != '*') {
            co_return;
        }
        const long long number = number_in(line->substr(1));
        if (number < 0) {
            co_return; // there is no such value
        }
        if (answer.size() + static_cast<unsigned long long>(number) > limit_.answer_size) {
            throw std::system_error(std::make_error_code(std::errc::message_size));
        }
        if (type == '$') {
            const std::size_t begin = answer.size();
            answer.resize(begin + static_cast<std::size_t>(number) + 2);
            (co_await from.read_exact({answer.data() + begin, answer.size() - begin})).value();
            co_return;
        }
        for (long long i = 0; i < number; ++i) {
            co_await read_answer(from, answer, depth + 1);
        }
    }

    /// Returns when redis closes the connection, even while no command is in flight.
    static task<> notice_end(net::socket& server) {
        co_await io::poll(server.native_handle(), POLLRDHUP);
    }

    const std::string host_;
    const std::uint16_t port_;
    const limits limit_;
    counters count_;
    std::deque<ticket> waiting_;
    counting_semaphore<> ready_{0}; // one permit for each waiting command
};

} // namespace redis
