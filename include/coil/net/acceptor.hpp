#pragma once

#include <coil/core/task.hpp>
#include <coil/net/detail/socket_file_owner.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/inet_address.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <optional>
#include <utility>

namespace coil::net {

/// Options of an acceptor.
struct acceptor_options {
    int backlog = SOMAXCONN;
    /// SO_REUSEPORT: several acceptors share the port, each with its own queue.
    bool reuse_port = false;
    /// For a Unix socket: SOCK_STREAM or SOCK_SEQPACKET.
    int unix_type = SOCK_STREAM;
    /// SO_INCOMING_CPU, for TCP: among acceptors with `reuse_port` that share the port, the kernel
    /// prefers this one for connections whose packets arrive on this processor (Linux 6.2 and
    /// later). -1: no preference. A kernel that refuses the option is ignored, and a simulated
    /// world accepts it without an effect.
    int incoming_cpu = -1;
};

#define COIL_ACCEPTOR_ARGUMENTS                                                                    \
    "name the option: acceptor(8080, {.backlog = 128}); the address and the port are one "         \
    "argument: acceptor(\"0.0.0.0:8080\")"

/// A listening socket, for TCP or the Unix domain.
///
///     net::acceptor ac{net::inet_address{port}};
///     while (net::socket peer = co_await ac.accept())
///         co_spawn(session(std::move(peer)));
///
/// The constructor binds (for TCP with SO_REUSEADDR) and listens; on failure it throws
/// std::system_error whose message names the address (EADDRINUSE, EACCES, ...). Threading and
/// lifetime: as for net::socket.
///
/// Binding to a Unix path replaces a stale socket file, that is, one that refuses connections
/// because its server has ended. A file that is not a socket is never removed. The destructor
/// removes the socket file, unless another file has replaced it. (If two servers replace the same
/// stale file at the same time, both may succeed; clients then reach the later one.)
class acceptor {
public:
    /// `options` are acceptor_options: acceptor(8080, {.backlog = 128}). Other types are refused
    /// with a readable compiler error.
    template <class Options = acceptor_options>
    explicit acceptor(const endpoint& local, const Options& options = {})
        COIL_ERROR_IF((!std::derived_from<Options, acceptor_options>), COIL_ACCEPTOR_ARGUMENTS) {
        if constexpr (std::derived_from<Options, acceptor_options>) {
            open(local, options);
        } else {
#if !defined(__clang__)
            static_assert(std::derived_from<Options, acceptor_options>, COIL_ACCEPTOR_ARGUMENTS);
#endif
        }
    }
    /// Both the copy constructor and the default constructor, so that the compiler lists one
    /// candidate fewer when it refuses an option.
    acceptor(const acceptor& = missing()) COIL_DELETE_COPY(
        "an acceptor has an address: acceptor(8080); and one owner: std::move(ac)");
    acceptor& operator=(const acceptor&) = delete;
    acceptor(acceptor&&) noexcept = default;
    acceptor& operator=(acceptor&&) noexcept = default;
    ~acceptor() = default;

    /// accept4(2), close-on-exec: returns the next connection. Temporary errors are handled. After
    /// ECONNABORTED, EINTR or EPROTO it accepts the next connection immediately. (Linux returns a
    /// connection that the client has already reset; reading from it fails.) When descriptors or
    /// memory have run out (EMFILE, ENFILE, ENOBUFS, ENOMEM), a firewall forbids the connection
    /// (EPERM), or the network reports an error (accept(2), "Error handling"), it retries every few
    /// milliseconds; clients wait in the backlog meanwhile. On other errors, and when cancelled, it
    /// returns a socket that converts to false and whose error() holds the reason.
    task<socket> accept();
    /// Produce readable compiler errors.
    template <class First, class... Rest>
    task<socket> accept(First&&, Rest&&...)
        COIL_DELETE("accept takes no arguments: net::socket peer = co_await ac.accept()");
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
    static const acceptor& missing();
    void open(const endpoint& local, const acceptor_options& options);
    void bind_unix(const endpoint& local);

    detail::socket_file_owner
        file_; // removed after socket_ is closed, when clients can no longer connect
    socket socket_;
};

#undef COIL_ACCEPTOR_ARGUMENTS

} // namespace coil::net
