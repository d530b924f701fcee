#pragma once

#include <coil/core/task.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace coil::net {

/// Options of an acceptor.
struct acceptor_options {
    int backlog = SOMAXCONN;
    /// SO_REUSEPORT: several acceptors share the port, each with its own queue.
    bool reuse_port = false;
    /// Of a Unix socket: SOCK_STREAM or SOCK_SEQPACKET.
    int unix_type = SOCK_STREAM;
};

namespace detail {

/// The file of a Unix socket that is bound to a path: removed when its acceptor goes, unless
/// another file has taken its place.
class socket_file_owner {
public:
    socket_file_owner() noexcept = default;
    explicit socket_file_owner(std::string path);
    socket_file_owner(socket_file_owner&& other) noexcept
        : path_(std::exchange(other.path_, {})), inode_(other.inode_), device_(other.device_) {}
    socket_file_owner& operator=(socket_file_owner&& other) noexcept;
    ~socket_file_owner() { remove(); }

private:
    void remove() noexcept;

    std::string path_; // empty: owns nothing
    std::uint64_t inode_ = 0;
    std::uint64_t device_ = 0;
};

} // namespace detail

/// A listening socket: TCP, or of the Unix domain.
///
///     net::acceptor ac{net::inet_address{port}};
///     while (net::socket peer = co_await ac.accept())
///         co_spawn(session(std::move(peer)));
///
/// The constructor binds and listens, with SO_REUSEADDR; on failure it throws std::system_error
/// whose message names the address (EADDRINUSE, EACCES, ...). Threading and lifetime as
/// net::socket.
///
/// A Unix socket's path is taken over when the socket that has it is stale, that is, when it
/// refuses connections because its server is gone; a file that is no socket is never removed. The
/// destructor removes the path, unless something else has taken its place. (Two servers that take
/// over the same path in the same instant may both succeed: the later one has the path.)
class acceptor {
public:
    explicit acceptor(const endpoint& local, const acceptor_options& options = {});

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

    /// The address it listens on: with port 0, tells which port it got. Throws for a Unix socket
    /// (address_family_not_supported).
    [[nodiscard]] inet_address local_address() const { return socket_.local_address(); }
    /// The same for any socket.
    [[nodiscard]] endpoint local_endpoint() const { return socket_.local_endpoint(); }
    [[nodiscard]] int native_handle() const noexcept { return socket_.native_handle(); }

private:
    void bind_unix(const endpoint& local);

    detail::socket_file_owner file_; // goes last: when nobody can connect any more
    socket socket_;
};

} // namespace coil::net
