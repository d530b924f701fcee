// Servers, sockets, clocks and synchronisation.

#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <chrono>
#include <string>

#if COIL_CASE == 1 // recv_from_unawaited
// expect: did you forget to co_await? Write auto [n, peer] = co_await s.recv_from(buf)
// mistake 2: `auto [n, peer] = s.recv_from(buf);`

coil::task<> caller(coil::net::socket& s) {
#if defined(COIL_EXPECT_OK)
    char buf[64];
    auto [n, peer] = co_await s.recv_from(buf);
    static_cast<void>(n);
#else
    char buf[64];
    auto [n, peer] = s.recv_from(buf);
#endif
    co_return;
}
#endif

#if COIL_CASE == 2 // connect_with_a_service
// expect: the port is a number: connect("example.org", 443)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::connect("example.org", 443);
#else
    co_await coil::net::connect("example.org", "443");
#endif
    co_return;
}
#endif

#if COIL_CASE == 3 // resolve_without_a_port
// expect: resolve takes the host and the port: resolve("example.org", 443)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::resolve("example.org", 443);
#else
    co_await coil::net::resolve("example.org");
#endif
    co_return;
}
#endif

#if COIL_CASE == 4 // acceptor_of_two_arguments
// expect: the address and the port are one argument: acceptor("0.0.0.0:8080")

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor a("0.0.0.0:8080");
#else
    coil::net::acceptor a("0.0.0.0", 8080);
#endif
    co_return;
}
#endif

#if COIL_CASE == 5 // endpoint_with_a_port_as_text
// expect: the port is a number: endpoint("127.0.0.1", 80)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    const coil::net::endpoint e("127.0.0.1", 80);
#else
    const coil::net::endpoint e("127.0.0.1", "80");
#endif
    co_return;
}
#endif

#if COIL_CASE == 6 // for_over_connections
// expect: write while (auto peer = co_await connections.next()) instead of for

coil::task<> caller(coil::net::acceptor& a) {
#if defined(COIL_EXPECT_OK)
    auto connections = a.incoming();
    while (auto peer = co_await connections.next()) {
    }
#else
    for (auto peer : a.incoming()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 7 // server_on_a_context
// expect: a server on one context is a task of it

coil::task<> session(coil::net::socket);

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    ctx.co_spawn(coil::net::serve(80, session));
#else
    co_await coil::net::serve(ctx, 80, session);
#endif
    co_return;
}
#endif

#if COIL_CASE == 8 // server_here_with_a_plain_handler
// expect: the handler takes the connection by value and returns a task<>

void session(coil::net::socket);
coil::task<> correct(coil::net::socket);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(80, correct);
#else
    co_await coil::net::serve(80, session);
#endif
    co_return;
}
#endif

#if COIL_CASE == 9 // sleep_until_a_duration
// expect: this is a duration, not a time point: write sleep_for(duration)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::sleep_for(std::chrono::seconds(3));
#else
    co_await coil::sleep_until(std::chrono::seconds(3));
#endif
    co_return;
}
#endif

#if COIL_CASE == 10 // sleep_for_a_time_point
// expect: this is a time point, not a duration: write sleep_until(time)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::sleep_until(coil::context_clock::now());
#else
    co_await coil::sleep_for(coil::context_clock::now());
#endif
    co_return;
}
#endif

#if COIL_CASE == 11 // token_unawaited
// expect: await the token: (co_await this_task::stop_token()).stop_requested()

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    if ((co_await coil::this_task::stop_token()).stop_requested()) {
    }
#else
    if (coil::this_task::stop_token().stop_requested()) {
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 12 // for_over_a_channel
// expect: write while (auto x = co_await c.recv()) instead of for

coil::task<> caller(coil::channel<int>& c) {
#if defined(COIL_EXPECT_OK)
    while (auto x = co_await c.recv()) {
    }
#else
    for (int x : c) {
        static_cast<void>(x);
    }
#endif
    co_return;
}
#endif

#if COIL_CASE == 13 // oneshot_awaited
// expect: receive from it: co_await o.recv()

coil::task<> caller(coil::oneshot<int>& o) {
#if defined(COIL_EXPECT_OK)
    co_await o.recv();
#else
    co_await o;
#endif
    co_return;
}
#endif

#if COIL_CASE == 14 // broadcast_received
// expect: subscribe first: auto mine = b.subscribe(); co_await mine.recv()

coil::task<> caller(coil::broadcast<int>& b) {
#if defined(COIL_EXPECT_OK)
    auto mine = b.subscribe();
    co_await mine.recv();
#else
    b.recv();
#endif
    co_return;
}
#endif

#if COIL_CASE == 15 // latch_without_a_count
// expect: pass the number of calls of count_down(): latch done(3)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    coil::latch done(3);
#else
    coil::latch done;
#endif
    co_return;
}
#endif

#if COIL_CASE == 16 // server_with_options_and_a_plain_handler
// expect: the handler takes the connection by value and returns a task<>

void session(coil::net::socket);
coil::task<> correct(coil::net::socket);

coil::task<> caller(coil::runtime& rt) {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(rt, 80, correct, {.max_connections = 5});
#else
    co_await coil::net::serve(rt, 80, session, {.max_connections = 5});
#endif
    co_return;
}
#endif

#if COIL_CASE == 17 // server_here_with_options_and_two_parameters
// expect: the handler takes the connection by value and returns a task<>

struct room {};
coil::task<> session(coil::net::socket, room&);
coil::task<> correct(coil::net::socket);

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::serve(80, correct, {.max_connections = 5});
#else
    co_await coil::net::serve(80, session, {.max_connections = 5});
#endif
    co_return;
}
#endif

#if COIL_CASE == 18 // server_on_a_context_with_options
// expect: a server on one context is a task of it

coil::task<> session(coil::net::socket);

coil::task<> caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    ctx.co_spawn(coil::net::serve(80, session, {.max_connections = 5}));
#else
    co_await coil::net::serve(ctx, 80, session, {.max_connections = 5});
#endif
    co_return;
}
#endif
