#pragma once

#include <coil/context/io_context.hpp>
#include <coil/context/runtime.hpp>
#include <coil/core/config.hpp>
#include <coil/core/task.hpp>
#include <coil/net/detail/connection_handler.hpp>
#include <coil/net/endpoint.hpp>

#include <concepts>
#include <type_traits>

namespace coil::net::detail {

/// Where serve() accepts connections. An io_context is refused with a message.
template <class On>
concept serves_connections = std::derived_from<On, runtime> || std::derived_from<On, io_context>;

/// Why serve() refuses its arguments, as far as their types show the reason.
enum class serve_mistake { none, no_handler, order, split_address, handler, number };

template <class Handler, class... Rest>
constexpr serve_mistake mistake_behind_address() noexcept {
    serve_mistake found = serve_mistake::none;
    if constexpr (sizeof...(Rest) > 0) { // otherwise serve() itself checks the handler
        if constexpr (std::integral<std::remove_cvref_t<Handler>>) {
            found = serve_mistake::split_address;
        } else if constexpr (!handles_connections<Handler>) {
            found = serve_mistake::handler;
        } else if constexpr ((std::integral<std::remove_cvref_t<Rest>> || ...)) {
            found = serve_mistake::number;
        }
    }
    return found;
}

template <class... Nothing>
    requires(sizeof...(Nothing) == 0) // GCC instantiates this if an argument is a braced list
constexpr serve_mistake mistake_of_serve() noexcept {
    return serve_mistake::none;
}

template <class First, class... Rest>
constexpr serve_mistake mistake_of_serve() noexcept {
    if constexpr (serves_connections<std::remove_cvref_t<First>>) {
        if constexpr (sizeof...(Rest) == 0) {
            return serve_mistake::no_handler;
        } else {
            return mistake_of_serve<Rest...>();
        }
    } else if constexpr (!std::convertible_to<First, endpoint>) {
        return serve_mistake::order;
    } else if constexpr (sizeof...(Rest) == 0) {
        return serve_mistake::no_handler;
    } else {
        return mistake_behind_address<Rest...>();
    }
}

template <serve_mistake Mistake, class... Args>
inline constexpr bool is_serve_mistake = mistake_of_serve<Args...>() == Mistake;

/// The return type of the overload that explains a mistake. (It is shorter in the compiler's list
/// of candidates than a constraint.)
template <class... Args>
using refused_serve = std::enable_if_t<!is_serve_mistake<serve_mistake::none, Args...>, task<>>;

} // namespace coil::net::detail

#define COIL_SERVE_HERE                                                                            \
    "a server on one context is a task of it: ctx.co_spawn(net::serve(port, handler))"
#define COIL_SERVE_HANDLER                                                                         \
    "the handler takes the connection by value and returns a task<>: "                             \
    "task<> session(net::socket peer); a lambda adds arguments: "                                  \
    "[&room](net::socket peer) { return session(std::move(peer), room); }"
#define COIL_SERVE_NO_HANDLER "pass the handler of the connections: serve(rt, 8080, session)"
#define COIL_SERVE_ORDER "the address comes before the handler: serve(rt, 8080, session)"
#define COIL_SERVE_SPLIT_ADDRESS                                                                   \
    "the address and the port are one argument: serve(rt, \"0.0.0.0:8080\", session)"
#define COIL_SERVE_NUMBER "name the option: serve(rt, 8080, session, {.max_connections = 1000})"
