#pragma once

#include <coil/base/std_function.hpp>
#include <coil/context/runtime.hpp>
#include <coil/core/inplace_stop_token.hpp>
#include <coil/core/task.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/serve_options.hpp>
#include <coil/net/socket.hpp>

#include <concepts>
#include <utility>

namespace coil::net::detail {

using connection_handler = std::function<task<>(socket, inplace_stop_token)>;

/// The functions that serve() accepts as its handler.
template <class H>
concept handles_connections = requires(H& handler, socket peer, inplace_stop_token stop) {
    { handler(std::move(peer), stop) } -> std::convertible_to<task<>>;
} || requires(H& handler, socket peer) {
    { handler(std::move(peer)) } -> std::convertible_to<task<>>;
};

[[nodiscard]] task<> serve_erased(runtime& on, endpoint where, connection_handler handler,
                                  serve_options options);
[[nodiscard]] task<> serve_here(endpoint where, connection_handler handler, serve_options options);

/// Adapts a handler without a stop token to connection_handler.
template <class Handler>
struct handler_without_token {
    Handler handler;
    COIL_CORO_WRAPPER task<> operator()(socket peer, inplace_stop_token) {
        return handler(std::move(peer));
    }
};

template <class Handler>
connection_handler with_stop(Handler handler) {
    if constexpr (std::invocable<Handler&, socket, inplace_stop_token>) {
        return connection_handler(std::move(handler));
    } else {
        return handler_without_token<Handler>{std::move(handler)};
    }
}

} // namespace coil::net::detail
