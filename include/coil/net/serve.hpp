#pragma once

#include <coil/context/runtime.hpp>
#include <coil/core/config.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/detail/connection_handler.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/serve_metrics.hpp>
#include <coil/net/serve_options.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil::net {

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
/// can end immediately.
///
/// An exception of a handler ends only its connection. It is reported to the context's
/// on_unhandled_exception, unless it means that the connection was cancelled; the message on stderr
/// contains the client's address and the handler's function. If listening fails, on any of the
/// contexts, the server stops as above and serve() throws std::system_error as acceptor does. All
/// contexts share the handler, so it is called on several threads concurrently. A Unix socket has
/// one acceptor, on the first context.
///
/// Destroying the awaiting frame, as a runtime's shutdown does, ends the server and its connections
/// without grace. Listeners on other contexts end asynchronously.
template <class Handler>
    requires detail::handles_connections<Handler>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
serve(runtime& on, endpoint where, Handler handler, serve_options options = {}) {
    return detail::serve_erased(on, std::move(where), detail::with_stop(std::move(handler)),
                                std::move(options));
}

/// The same on the calling task's context alone, with one acceptor. A simulated world, which has no
/// threads and so no runtime, runs a server in this form, with the same limits:
///
///     host.co_spawn(net::serve(8080, session, {.max_connections = 100, .idle = 60s}));
template <class Handler>
    requires detail::handles_connections<Handler>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
serve(endpoint where, Handler handler, serve_options options = {}) {
    return detail::serve_here(std::move(where), detail::with_stop(std::move(handler)),
                              std::move(options));
}

/// Produce readable compiler errors. Those with serve_options accept a braced list.
template <class Handler, class... Rest>
    requires(!detail::handles_connections<Handler>)
task<> serve(endpoint, Handler&&, Rest&&...)
    COIL_DELETE("the handler takes the connection by value and returns a task<>: "
                "task<> session(net::socket peer)");
template <class Handler>
    requires(!detail::handles_connections<Handler>)
task<> serve(endpoint, Handler&&, serve_options)
    COIL_DELETE("the handler takes the connection by value and returns a task<>: "
                "task<> session(net::socket peer)");
template <class... Rest>
task<> serve(io_context&, Rest&&...)
    COIL_DELETE("a server on one context is a task of it: ctx.co_spawn(net::serve(port, handler))");
template <class Handler>
task<> serve(io_context&, endpoint, Handler&&, serve_options)
    COIL_DELETE("a server on one context is a task of it: ctx.co_spawn(net::serve(port, handler))");
template <class Handler, class... Rest>
    requires(!detail::handles_connections<Handler>)
task<> serve(runtime&, endpoint, Handler&&, Rest&&...)
    COIL_DELETE("the handler takes the connection by value and returns a task<>: "
                "task<> session(net::socket peer)");
template <class Handler, std::integral Number>
    requires detail::handles_connections<Handler>
task<> serve(runtime&, endpoint, Handler&&, Number)
    COIL_DELETE("name the option: serve(rt, 8080, session, {.max_connections = 1000})");
template <class Handler, std::integral Port>
    requires detail::handles_connections<Handler>
task<> serve(runtime&, Handler&&, Port)
    COIL_DELETE("the address comes before the handler: serve(rt, 8080, session)");
template <class Handler>
    requires(!detail::handles_connections<Handler>)
task<> serve(runtime&, endpoint, Handler&&, serve_options)
    COIL_DELETE("the handler takes the connection by value and returns a task<>: "
                "task<> session(net::socket peer)");

} // namespace coil::net
