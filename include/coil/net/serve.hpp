#pragma once

#include <coil/context/runtime.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/serve_metrics.hpp>
#include <coil/net/socket.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace coil::net {

/// Options of serve().
struct serve_options {
    /// The maximum number of connections at a time, on all contexts together. Further clients wait
    /// in the backlog; each context may have accepted one of them already.
    std::size_t max_connections = 100'000;
    /// A TCP connection without traffic for this long is cancelled; 0 disables the limit. The
    /// server reads the time of the last traffic from TCP_INFO, so the handler need not do
    /// anything. Not available for Unix sockets and in a simulated world.
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
    /// Counts what the server does, if not null.
    std::shared_ptr<serve_meter> meter = {};
};

namespace detail {

using connection_handler = std::function<task<>(socket, inplace_stop_token)>;

[[nodiscard]] task<> serve_erased(runtime& on, endpoint where, connection_handler handler,
                                  serve_options options);

} // namespace detail

/// A server on all contexts of a runtime: an acceptor on each (SO_REUSEPORT), and `handler(peer)`,
/// a task, for each connection, on the context that accepted it.
///
///     runtime rt;
///     rt.block_on(net::serve(rt, 8080, [](net::socket peer) -> task<> { ... }));
///
/// The server runs until its task is asked to stop. It then accepts no more connections and waits
/// up to `grace` for the existing ones to end. It cancels the rest, and after another
/// `hard_deadline` it destroys those that have still not ended. So it returns within the sum of
/// both, unless a handler blocks its thread. A handler may take a second parameter, an
/// inplace_stop_token, which is signalled when the server begins to stop, so that idle connections
/// can end at once.
///
/// An exception of a handler ends only its connection. It is reported to the context's
/// on_unhandled_exception, unless it means that the connection was cancelled. If listening fails,
/// on any of the contexts, the server stops as above and serve() throws std::system_error as
/// acceptor does. All contexts share the handler, so it is called on several threads at once. A
/// Unix socket has one acceptor, on the first context.
///
/// Destroying the awaiting frame, as a runtime's shutdown does, ends the server and its connections
/// without grace. Listeners on other contexts end asynchronously.
template <class Handler>
    requires std::invocable<Handler&, socket, inplace_stop_token> ||
             std::invocable<Handler&, socket>
[[nodiscard]] COIL_CORO_WRAPPER task<> serve(runtime& on, endpoint where, Handler handler,
                                             serve_options options = {}) {
    if constexpr (std::invocable<Handler&, socket, inplace_stop_token>) {
        return detail::serve_erased(on, std::move(where), std::move(handler), std::move(options));
    } else {
        return detail::serve_erased(
            on, std::move(where),
            [h = std::move(handler)](socket peer, inplace_stop_token) mutable {
                return h(std::move(peer));
            },
            std::move(options));
    }
}

} // namespace coil::net
