#pragma once

#include <coil/base/std_chrono.hpp>
#include <coil/base/std_function.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/serve_metrics.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace coil::net {

/// How the connections of a server on a runtime are distributed over its contexts.
enum class balancing {
    /// The kernel hashes the addresses of each connection (SO_REUSEPORT), and the context that
    /// accepts a connection serves it. With few connections that last long, some contexts may get
    /// many more than others. A Unix socket has one acceptor, so the first context serves all.
    kernel,
    /// As above, but if the accepting context has clearly more connections than the context with
    /// the fewest, that context serves the new connection. Clearly more means at least two and a
    /// sixteenth more, or any if that context has none. Only connections of this server count. For
    /// connections that last long, and for Unix sockets.
    least_connections,
};

/// Options of serve().
struct serve_options {
    /// The maximum number of connections at a time, on all contexts together; 0 counts as 1.
    /// Further clients wait in the backlog, except that each context may already have accepted one
    /// of them.
    std::size_t max_connections = 100'000;
    /// A TCP connection without traffic in either direction for this long is cancelled; 0 disables
    /// the limit. The server reads the time of the last traffic from TCP_INFO, so the handler need
    /// not do anything. A client that only receives is not idle: use timeout() to limit the wait
    /// for what it sends. Not available for Unix sockets.
    std::chrono::milliseconds idle{0};
    /// The time that connections have to end after the server was asked to stop. The remaining ones
    /// are then cancelled.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// The time that cancelled connections have to end after `grace`. The remaining ones are then
    /// destroyed, including the work that they shield from cancellation.
    std::chrono::milliseconds hard_deadline = std::chrono::seconds(5);
    /// Called on the awaiting context with the address once all contexts listen.
    std::function<void(const endpoint&)> on_listening = {};
    acceptor_options acceptor = {};
    /// Which context serves a connection.
    net::balancing balancing = net::balancing::kernel;
    /// Whether the acceptor of each context that is pinned to a processor (runtime_options::pin)
    /// prefers the connections whose packets arrive on that processor: the context's processor is
    /// its acceptor_options::incoming_cpu. If all packets arrive on one processor, as with a
    /// network card with one queue, that context gets all connections, unless they are balanced.
    bool incoming_cpu = false;
    /// Counts what the server does, if not null.
    std::shared_ptr<serve_meter> meter = {};
    /// The name of each connection's task, shown by dump_tasks() and in the message of its
    /// exception. If empty, the dump shows only the functions.
    std::string name = {};
};

} // namespace coil::net
