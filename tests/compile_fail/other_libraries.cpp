// Calls of sockets, acceptors and files as in other libraries.

#include <coil/coil.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#if COIL_CASE == 1 // number_of_bytes_to_read
// expect: pass a buffer, which read fills: int n = co_await f.read(buf)
// mistake 21: `std::string s = co_await f.read(10);`

coil::task<> caller(coil::fs::file& f) {
#if defined(COIL_EXPECT_OK)
    char buf[10];
    co_await f.read(buf);
#else
    std::string text = co_await f.read(10);
#endif
}
#endif

#if COIL_CASE == 2 // number_of_bytes_to_receive
// expect: pass a buffer, which recv fills: int n = co_await s.recv(buf)

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    char buf[10];
    co_await peer.recv(buf);
#else
    co_await peer.recv(10);
#endif
}
#endif

#if COIL_CASE == 3 // error_code_of_recv
// expect: the result has the error: int n = co_await s.recv(buf), -errno if n < 0

coil::task<> caller(coil::net::socket& peer) {
    char buf[10];
#if defined(COIL_EXPECT_OK)
    int n = co_await peer.recv(buf);
    static_cast<void>(n);
#else
    std::error_code ec;
    co_await peer.recv(buf, ec);
#endif
}
#endif

#if COIL_CASE == 4 // error_code_of_send
// expect: the result has the error: int n = co_await s.send(buf), -errno if n < 0

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    int n = co_await peer.send("text");
    static_cast<void>(n);
#else
    std::error_code ec;
    co_await peer.send("text", ec);
#endif
}
#endif

#if COIL_CASE == 5 // result_compared_with_errc
// expect: compare the error: r.error() == std::errc::timed_out, or r == -ETIMEDOUT

coil::task<bool> caller(coil::net::socket& peer) {
    const coil::io_result r = co_await peer.send("text");
#if defined(COIL_EXPECT_OK)
    co_return r.error() == std::errc::timed_out;
#else
    co_return r == std::errc::timed_out;
#endif
}
#endif

#if COIL_CASE == 6 // result_bound_to_two_names
// expect: the result is one number: int n = co_await io::read(fd, buf), and -errno if n < 0

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    int n = co_await peer.send("text");
    static_cast<void>(n);
#else
    auto [ec, n] = co_await peer.send("text");
    static_cast<void>(ec);
    static_cast<void>(n);
#endif
}
#endif

#if COIL_CASE == 7 // switch_over_an_operation
// expect: statement requires expression of integer type
// only: clang
// mistake 2: `switch (peer.send(buf))`

coil::task<> caller(coil::net::socket& peer) {
#if defined(COIL_EXPECT_OK)
    switch (co_await peer.send("text")) {
    default:
        break;
    }
#else
    switch (peer.send("text")) {
    default:
        break;
    }
#endif
}
#endif

#if COIL_CASE == 8 // acceptor_with_a_misspelt_option
// expect: no matching constructor for initialization of 'coil::net::acceptor'
// only: clang

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor ac(8080, {.reuse_port = true});
#else
    coil::net::acceptor ac(8080, {.reuseport = true});
#endif
}
#endif

#if COIL_CASE == 9 // acceptor_with_a_port_as_text
// expect: the port are one argument: acceptor("0.0.0.0:8080")

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor ac("0.0.0.0:8080");
#else
    coil::net::acceptor ac("0.0.0.0", "8080");
#endif
}
#endif

#if COIL_CASE == 10 // acceptor_copied
// expect: and one owner: std::move(ac)
// only: clang

void caller(coil::net::acceptor& ac) {
#if defined(COIL_EXPECT_OK)
    coil::net::acceptor other(std::move(ac));
#else
    coil::net::acceptor other(ac);
#endif
}
#endif

#if COIL_CASE == 11 // accept_into_a_socket
// expect: accept takes no arguments: net::socket peer = co_await ac.accept()

coil::task<> caller(coil::net::acceptor& ac) {
#if defined(COIL_EXPECT_OK)
    coil::net::socket peer = co_await ac.accept();
#else
    coil::net::socket peer;
    co_await ac.accept(peer);
#endif
}
#endif

#if COIL_CASE == 12 // socket_of_a_context
// expect: a socket takes no context: net::socket::create_tcp(), net::connect(host, port)
// only: clang

void caller(coil::io_context& ctx) {
#if defined(COIL_EXPECT_OK)
    static_cast<void>(ctx);
    coil::net::socket s;
#else
    coil::net::socket s(ctx);
#endif
}
#endif

#if COIL_CASE == 13 // socket_of_a_family
// expect: net::connect("127.0.0.1", 80); or it is made by create_tcp()

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::socket s = coil::net::socket::create_tcp(AF_INET);
#else
    coil::net::socket s(AF_INET, SOCK_STREAM, 0);
#endif
}
#endif

#if COIL_CASE == 14 // socket_awaited
// expect: receive from it: co_await s.recv(buf)
// only: clang

coil::task<> caller(coil::net::socket& peer) {
    char buf[10];
#if defined(COIL_EXPECT_OK)
    co_await peer.recv(buf);
#else
    static_cast<void>(buf);
    co_await peer;
#endif
}
#endif

#if COIL_CASE == 15 // port_of_an_address_as_text
// expect: the port is a number: inet_address("127.0.0.1", 80)

void caller() {
#if defined(COIL_EXPECT_OK)
    coil::net::inet_address a("127.0.0.1", 80);
#else
    coil::net::inet_address a("127.0.0.1", "80");
#endif
}
#endif

#if COIL_CASE == 16 // port_before_the_host
// expect: the host comes before the port: connect("example.org", 443)

coil::task<> caller() {
#if defined(COIL_EXPECT_OK)
    co_await coil::net::connect("example.org", 443);
#else
    co_await coil::net::connect(443, "example.org");
#endif
}
#endif
