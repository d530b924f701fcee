#pragma once

#include <coil/context/runtime.hpp>
#include <coil/core/config.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/acceptor.hpp>
#include <coil/net/detail/connection_handler.hpp>
#include <coil/net/detail/serve_mistake.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/serve_metrics.hpp>
#include <coil/net/serve_options.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coil::net {

/// Runs a server on all contexts of a runtime. Each context has an acceptor (SO_REUSEPORT); for
/// each connection it accepts, it runs the task that `handler(peer)` returns.
///
///     runtime rt;
///     rt.block_on(net::serve(rt, 8080, [](net::socket peer) -> task<> { ... }));
///
/// The server runs until its task is asked to stop. It then accepts no more connections and waits
/// up to `grace` for the existing ones to end. It cancels the rest, and after another
/// `hard_deadline` it destroys those that have still not ended. A stop thus takes at most the sum
/// of both, unless a handler blocks its thread. A handler may take a second parameter, an
/// inplace_stop_token, on which a stop is requested when the server begins to stop, so that idle
/// connections can end immediately.
///
/// An exception of a handler ends only its connection. It is reported to the context's
/// on_unhandled_exception, unless it means that the connection was cancelled; the message on stderr
/// contains the client's address and the handler's function. If listening fails on any of the
/// contexts, the server stops as above and serve() throws the acceptor's std::system_error. All
/// contexts share the handler, so it is called on several threads concurrently. For a Unix socket
/// there is one acceptor, on the first context.
///
/// With balancing::least_connections, a context that has clearly more connections than another one
/// hands a new connection over to it, before the handler is called. All limits and the stop apply
/// to such a connection as to any other. If the server stops while a connection is being handed
/// over, its handler is still called, and gets the grace period. If the awaiting frame is destroyed
/// or the runtime is stopped meanwhile, the connection may be closed without a call.
///
/// Destroying the awaiting frame, as a runtime's shutdown does, ends the server and its connections
/// without grace. Listeners on other contexts end asynchronously.
template <detail::serves_connections On, class Handler>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
serve(On& on, endpoint where, Handler handler, serve_options options = {})
    COIL_ERROR_IF((!std::derived_from<On, runtime>), COIL_SERVE_HERE)
        COIL_ERROR_IF((!detail::handles_connections<Handler>), COIL_SERVE_HANDLER) {
    static_assert(std::derived_from<On, runtime>, COIL_SERVE_HERE);
    static_assert(detail::handles_connections<Handler>, COIL_SERVE_HANDLER);
    return detail::serve_erased(on, std::move(where), detail::with_stop(std::move(handler)),
                                std::move(options));
}

/// The same on the calling task's context alone, with one acceptor. This form also runs in a
/// simulated world, which has no threads and therefore no runtime:
///
///     host.co_spawn(net::serve(8080, session, {.max_connections = 100, .idle = 60s}));
template <class Handler>
[[nodiscard("did you forget to co_await?")]] COIL_CORO_WRAPPER task<>
serve(endpoint where, Handler handler, serve_options options = {})
    COIL_ERROR_IF((!detail::handles_connections<Handler>), COIL_SERVE_HANDLER) {
    static_assert(detail::handles_connections<Handler>, COIL_SERVE_HANDLER);
    return detail::serve_here(std::move(where), detail::with_stop(std::move(handler)),
                              std::move(options));
}

/// Produces readable compiler errors.
template <class... Args>
detail::refused_serve<Args...> serve(Args&&...) COIL_ERROR_IF(
    (detail::is_serve_mistake<detail::serve_mistake::no_handler, Args...>), COIL_SERVE_NO_HANDLER)
    COIL_ERROR_IF((detail::is_serve_mistake<detail::serve_mistake::order, Args...>),
                  COIL_SERVE_ORDER)
        COIL_ERROR_IF((detail::is_serve_mistake<detail::serve_mistake::split_address, Args...>),
                      COIL_SERVE_SPLIT_ADDRESS)
            COIL_ERROR_IF((detail::is_serve_mistake<detail::serve_mistake::handler, Args...>),
                          COIL_SERVE_HANDLER)
                COIL_ERROR_IF((detail::is_serve_mistake<detail::serve_mistake::number, Args...>),
                              COIL_SERVE_NUMBER) {
    using enum detail::serve_mistake;
    static_assert(!detail::is_serve_mistake<no_handler, Args...>, COIL_SERVE_NO_HANDLER);
    static_assert(!detail::is_serve_mistake<order, Args...>, COIL_SERVE_ORDER);
    static_assert(!detail::is_serve_mistake<split_address, Args...>, COIL_SERVE_SPLIT_ADDRESS);
    static_assert(!detail::is_serve_mistake<handler, Args...>, COIL_SERVE_HANDLER);
    static_assert(!detail::is_serve_mistake<number, Args...>, COIL_SERVE_NUMBER);
}

} // namespace coil::net
