#pragma once

#include <coil/core/task.hpp>
#include <coil/net/detail/socket_file_owner.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <optional>
#include <string_view>
#include <utility>

namespace coil::net {

/// Options of an acceptor.
struct acceptor_options {
    int backlog = SOMAXCONN;
    /// SO_REUSEPORT: several acceptors share the port, each with its own queue.
    bool reuse_port = false;
    /// For a Unix socket: SOCK_STREAM or SOCK_SEQPACKET.
    int unix_type = SOCK_STREAM;
};

/// A listening socket, for TCP or the Unix domain.
///
///     net::acceptor ac{net::inet_address{port}};
///     while (net::socket peer = co_await ac.accept())
///         co_spawn(session(std::move(peer)));
///
/// The constructor binds and listens, with SO_REUSEADDR; on failure it throws std::system_error
/// whose message names the address (EADDRINUSE, EACCES, ...). Threading and lifetime: as for
/// net::socket.
///
/// Binding to a Unix path replaces a stale socket file, that is, one that refuses connections
/// because its server has ended. A file that is not a socket is never removed. The destructor
/// removes the socket file, unless another file has replaced it. (If two servers replace the same
/// stale file at the same time, both may succeed; clients then reach the later one.)
class acceptor {
public:
    explicit acceptor(const endpoint& local, const acceptor_options& options = {});
    /// Produce readable compiler errors.
    acceptor() COIL_DELETE_COPY("an acceptor has an address: acceptor(8080)");
    template <std::integral Port, std::integral Backlog>
    acceptor(Port, Backlog) COIL_DELETE("name the option: acceptor(8080, {.backlog = 128})");
    template <std::integral Port>
    acceptor(std::string_view, Port)
        COIL_DELETE("the address and the port are one argument: acceptor(\"0.0.0.0:8080\")");

    /// accept4(2), close-on-exec: returns the next connection. Temporary errors are handled. After
    /// ECONNABORTED, EINTR or EPROTO it accepts the next connection immediately. (Linux returns a
    /// connection that the client has already reset; reading from it fails.) When descriptors or
    /// memory have run out (EMFILE, ENFILE, ENOBUFS, ENOMEM), a firewall forbids the connection
    /// (EPERM), or the network reports an error (accept(2), "Error handling"), it retries every few
    /// milliseconds while clients wait in the backlog. On other errors, and when cancelled, it
    /// returns a socket that converts to false and whose error() holds the reason.
    task<socket> accept();
    /// Produces a readable compiler error.
    void operator co_await() const COIL_DELETE_COPY("accept a connection: co_await ac.accept()");

    /// The connections as an asynchronous range; the acceptor must outlive it:
    ///
    ///     auto connections = ac.incoming();
    ///     while (auto peer = co_await connections.next())
    ///         co_spawn(session(std::move(*peer)));
    ///
    /// The range ends when accept() would return a socket that converts to false.
    class connections {
    public:
        [[nodiscard]] task<std::optional<socket>> next();
        /// Produce readable compiler errors.
        void begin() const COIL_DELETE_COPY(
            "write while (auto peer = co_await connections.next()) instead of for");
        void end() const COIL_DELETE_COPY(
            "write while (auto peer = co_await connections.next()) instead of for");

    private:
        friend acceptor;
        explicit connections(acceptor& from) noexcept : from_(&from) {}

        acceptor* from_;
    };
    [[nodiscard]] connections incoming() noexcept { return connections(*this); }

    /// The local address. After binding to port 0 it contains the port that was assigned. Throws
    /// address_family_not_supported for a Unix socket.
    [[nodiscard]] inet_address local_address() const { return socket_.local_address(); }
    /// The same for any address family.
    [[nodiscard]] endpoint local_endpoint() const { return socket_.local_endpoint(); }
    [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

private:
    void bind_unix(const endpoint& local);

    detail::socket_file_owner
        file_; // removed after socket_ is closed, when clients can no longer connect
    socket socket_;
};

} // namespace coil::net
