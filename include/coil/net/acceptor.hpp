#pragma once

#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <optional>

namespace coil::net {

/// How an acceptor listens.
struct acceptor_options {
    int backlog = SOMAXCONN;
    /// SO_REUSEPORT: several acceptors share the port, each with its own queue.
    bool reuse_port = false;
};

/// A listening TCP socket.
///
///     net::acceptor ac{net::inet_address{port}};
///     while (net::socket peer = co_await ac.accept())
///         co_spawn(session(std::move(peer)));
///
/// Binds and listens in the constructor, with SO_REUSEADDR; throws std::system_error whose message
/// names the address when that fails (EADDRINUSE, EACCES, ...). Threading and lifetime as
/// net::socket.
class acceptor {
public:
    explicit acceptor(const inet_address& local, const acceptor_options& options = {});

    /// accept4(2), close-on-exec: the next connection. It does not fail for what passes: a
    /// connection that was reset before it was accepted is skipped, and when descriptors or memory
    /// have run out (EMFILE, ENFILE, ENOBUFS, ENOMEM) or the network is in trouble (accept(2),
    /// "Error handling") it tries again every few milliseconds while clients wait in the backlog.
    /// Otherwise, and when it is cancelled, a socket that is false and whose error() says why.
    task<socket> accept();

    /// The connections as an asynchronous range, for as long as the acceptor lives:
    ///
    ///     auto connections = ac.incoming();
    ///     while (auto peer = co_await connections.next())
    ///         co_spawn(session(std::move(*peer)));
    ///
    /// It ends where accept() would give a socket that is false.
    class connections {
    public:
        [[nodiscard]] task<std::optional<socket>> next();

    private:
        friend acceptor;
        explicit connections(acceptor& from) noexcept : from_(&from) {}

        acceptor* from_;
    };
    [[nodiscard]] connections incoming() noexcept { return connections(*this); }

    /// The address it listens on: with port 0, tells which port it got.
    [[nodiscard]] inet_address local_address() const { return socket_.local_address(); }
    [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

private:
    socket socket_;
};

} // namespace coil::net
