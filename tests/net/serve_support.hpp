// Servers and clients for the tests of net::serve.
#pragma once

#include "support/run.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace coil_test {

using namespace coil; // NOLINT(google-*): of the tests
using net::endpoint;

inline task<> echo_here(net::socket& peer) {
    char buf[64];
    for (int n; (n = co_await peer.recv(buf)) > 0;) {
        co_await peer.send_all({buf, n});
    }
}

inline task<> echo(net::socket peer) { co_await echo_here(peer); }

/// Connects `s` to an echo server and exchanges one byte with it.
inline task<> connect_and_echo(net::socket& s, endpoint where) {
    EXPECT_EQ(co_await s.connect(where), 0);
    char c = 'x';
    EXPECT_EQ((co_await (s.send({&c, 1}) && s.recv({&c, 1}))), 1);
}

/// Runs a server and `client(where, server)` on one runtime, and stops the server when the client
/// has ended.
template <class Handler, class Client>
void serve_and(runtime& rt, endpoint where, Handler handler, net::serve_options options,
               Client client) {
    auto main = [](runtime& on, endpoint at, Handler h, net::serve_options o, Client c) -> task<> {
        oneshot<endpoint> listening;
        o.on_listening = [&](const endpoint& e) { listening.send(e); };
        auto server = coil::spawn(net::serve(on, at, std::move(h), std::move(o)));
        const auto bound = co_await listening.recv();
        co_await c(*bound, server);
        server.cancel();
        co_await server;
    };
    rt.block_on(main(rt, where, std::move(handler), std::move(options), std::move(client)));
}

} // namespace coil_test
