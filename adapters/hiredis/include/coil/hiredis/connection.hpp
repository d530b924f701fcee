#pragma once

#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/hiredis/arguments.hpp>
#include <coil/hiredis/reply.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace coil::hiredis {

namespace detail {
class wire;
[[nodiscard]] task<reply> run_command(std::shared_ptr<wire> on, std::string encoded);
[[nodiscard]] task<std::vector<reply>> run_pipeline(std::shared_ptr<wire> on, std::string encoded,
                                                    std::size_t count);
} // namespace detail

/// The server to connect to, and how.
struct options {
    /// A name, a numeric address, or the path of a Unix socket: "unix:/run/redis/redis.sock".
    std::string host = "127.0.0.1";
    std::uint16_t port = 6379;
    std::string user{};     ///< used with a password; "": the default user
    std::string password{}; ///< "": no AUTH
    int database = 0;       ///< not 0: SELECT

    /// "127.0.0.1:6379/0", as in the messages of exceptions.
    [[nodiscard]] std::string name() const;
};

/// A connection to a Redis or Valkey server.
///
///     auto c = co_await hiredis::connection::connect({.port = 6379});
///     co_await c.command("SET %s %b", "key", data, size);            // hiredis' format
///     const auto value = co_await c.call("GET", "key");              // a list of arguments
///     auto [a, b] = co_await when_all(c.call("INCR", "a"), c.call("INCR", "b"));
///
/// Any number of tasks may use one connection at the same time. Their commands are pipelined:
/// commands of the same iteration of the context's loop are sent together, and replies are assigned
/// in the order of the commands. A command that blocks in the server (BLPOP) delays all that follow
/// it on this connection: use a pool. The same applies to transactions (MULTI), in which commands
/// of other tasks would be queued. SUBSCRIBE and MONITOR are refused with std::invalid_argument:
/// see subscriber.
///
/// Errors: command_error if the server refuses a command. connection_error once the connection is
/// broken, for outstanding and for later commands: it never reconnects by itself.
///
/// Threading: one context, on which it is also destroyed. It runs two tasks of its own there.
///
/// Cancellation: a command that is cancelled (std::system_error, operation_canceled) may still be
/// executed; its reply is discarded when it arrives. So a command can be limited by timeout(). The
/// frame of an awaiting task may be destroyed at any time.
///
/// Lifetime: destroying it closes the connection. Outstanding commands then throw connection_error.
class connection {
public:
    /// Connects and, as the options say, authenticates and selects the database. Throws
    /// connection_error, or command_error if the server refuses.
    [[nodiscard]] static task<connection> connect(options to = {});

    connection(connection&&) noexcept = default;
    connection& operator=(connection&& other) noexcept {
        connection(std::move(other)).wire_.swap(wire_);
        return *this;
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// A command in hiredis' format: %s takes a `const char*`, %b a pointer and a std::size_t, %d,
    /// %lld, %f, ... numbers. The arguments are copied before it returns. Throws
    /// std::invalid_argument for a malformed format.
    template <detail::printable... Args>
    [[nodiscard]] COIL_CORO_WRAPPER task<reply> command(const char* format, Args... args) {
        return detail::run_command(wire_, detail::format(format, args...));
    }
    /// A command as a list of arguments of any types that `argument` describes; they are copied
    /// before it returns.
    template <argument... Args>
        requires(sizeof...(Args) > 0)
    [[nodiscard]] COIL_CORO_WRAPPER task<reply> call(const Args&... args) {
        return detail::run_command(wire_, detail::encode(args...));
    }

    class pipeline;
    /// Commands that are sent together and awaited once.
    [[nodiscard]] pipeline pipelined() const;

    /// Whether the connection is open, as far as the client knows.
    [[nodiscard]] bool is_open() const noexcept;
    /// Whether another task may take the connection over: it is open, no reply is outstanding, no
    /// transaction or WATCH has begun, and no command has changed the state of the session (SELECT,
    /// AUTH, ...).
    [[nodiscard]] bool is_clean() const noexcept;
    /// The server and the database, such as "127.0.0.1:6379/0".
    [[nodiscard]] const std::string& server() const noexcept;

private:
    explicit connection(std::shared_ptr<detail::wire> w) noexcept : wire_(std::move(w)) {}

    std::shared_ptr<detail::wire> wire_;
};

/// Commands that are sent in one piece.
///
///     auto p = c.pipelined();
///     for (int i = 0; i < 100; ++i) p.call("INCR", "counter");
///     for (const auto& r : co_await std::move(p).execute()) ...
///
/// A value type; nothing is sent before execute() is awaited.
class connection::pipeline {
public:
    template <detail::printable... Args>
    pipeline& command(const char* format, Args... args) {
        encoded_ += detail::format(format, args...);
        ++count_;
        return *this;
    }
    template <argument... Args>
        requires(sizeof...(Args) > 0)
    pipeline& call(const Args&... args) {
        detail::append_command(encoded_, args...);
        ++count_;
        return *this;
    }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }

    /// Sends the commands and awaits all replies, one for each command. For a command that the
    /// server refuses, the reply is_error(); the others are not affected. Otherwise throws like
    /// connection::command().
    [[nodiscard]] COIL_CORO_WRAPPER task<std::vector<reply>> execute() && {
        return detail::run_pipeline(wire_, std::move(encoded_), std::exchange(count_, 0));
    }

private:
    friend class connection;
    explicit pipeline(std::shared_ptr<detail::wire> w) noexcept : wire_(std::move(w)) {}

    std::shared_ptr<detail::wire> wire_;
    std::string encoded_;
    std::size_t count_ = 0;
};

inline connection::pipeline connection::pipelined() const { return pipeline(wire_); }

} // namespace coil::hiredis
