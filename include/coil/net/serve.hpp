#pragma once

#include <coil/context/runtime.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/socket.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace coil::net {

/// How a server treats its connections.
struct serve_options {
    /// At the same time, on all contexts together. When there are so many, further clients wait in
    /// the backlog (of each context one connection is accepted already).
    std::size_t max_connections = 100'000;
    /// A TCP connection on which nothing was received or sent for so long is cancelled; 0: never.
    /// (It is looked up by TCP_INFO: the handler need not do anything. Not for Unix sockets and not
    /// in a simulated world.)
    std::chrono::milliseconds idle{0};
    /// How long connections have to end after the server was asked to stop.
    std::chrono::milliseconds grace = std::chrono::seconds(10);
    /// Called on the awaiting context with the address, when all contexts listen.
    std::function<void(const endpoint&)> on_listening = {};
    acceptor_options acceptor = {};
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
/// It runs until its task is asked to stop. Then it accepts no more, waits until the connections
/// have ended, for as long as `grace`; cancels those that have not; and returns when all have
/// ended. A handler that takes a second parameter, an inplace_stop_token, is told by it that the
/// server is stopping, so that connections that are idle by then may end at once.
///
/// An exception of a handler ends its connection alone, and goes to its context's
/// on_unhandled_exception, unless it only says that the connection was cancelled. What cannot be
/// listened on throws std::system_error as acceptor does. The handler is shared by all contexts: it
/// is called on several threads at once. A Unix socket has one acceptor, on the first context.
///
/// Destroying the awaiting frame, as a runtime's shutdown does, ends all of it without grace.
template <class Handler>
    requires std::invocable<Handler&, socket, inplace_stop_token> ||
             std::invocable<Handler&, socket>
[[nodiscard]] task<> serve(runtime& on, endpoint where, Handler handler,
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
