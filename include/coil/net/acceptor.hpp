#pragma once

#include <coil/core/task.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <optional>

namespace coil::net {

/// Options of an acceptor.
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
/// The constructor binds and listens, with SO_REUSEADDR; on failure it throws std::system_error
/// whose message names the address (EADDRINUSE, EACCES, ...). Threading and lifetime as
/// net::socket.
class acceptor {
public:
    explicit acceptor(const inet_address& local, const acceptor_options& options = {});

    /// accept4(2), close-on-exec: gives the next connection. Temporary errors are handled: a
    /// connection that was reset before it was accepted is skipped; when descriptors or memory have
    /// run out (EMFILE, ENFILE, ENOBUFS, ENOMEM) or the network reports an error (accept(2), "Error
    /// handling") it retries every few milliseconds while clients wait in the backlog. On other
    /// errors, and when cancelled, it gives a socket that is false and whose error() holds the
    /// reason.
    task<socket> accept();

    /// The connections as an asynchronous range; the acceptor must outlive it:
    ///
    ///     auto connections = ac.incoming();
    ///     while (auto peer = co_await connections.next())
    ///         co_spawn(session(std::move(*peer)));
    ///
    /// It ends when accept() would give a socket that is false.
    class connections {
    public:
        [[nodiscard]] task<std::optional<socket>> next();

    private:
        friend acceptor;
        explicit connections(acceptor& from) noexcept : from_(&from) {}

        acceptor* from_;
    };
    [[nodiscard]] connections incoming() noexcept { return connections(*this); }

    /// The address it listens on, with the assigned port if it was bound to port 0.
    [[nodiscard]] inet_address local_address() const { return socket_.local_address(); }
    [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

private:
    socket socket_;
};

} // namespace coil::net
