#pragma once

#include "tls/kernel_double.hpp"
#include "tls/support.hpp"

#include <memory>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace tls_test {

/// Two connected TCP sockets.
inline task<std::pair<net::socket, net::socket>> tcp_pair() {
    net::acceptor listener(net::inet_address("127.0.0.1", 0));
    net::socket one = net::socket::create_tcp();
    EXPECT_EQ(co_await one.connect(listener.local_address()), 0);
    net::socket other = co_await listener.accept();
    co_return std::pair(std::move(one), std::move(other));
}

inline tls::context kernel_server_context() {
    tls::context ctx = server_context();
    return ctx.prefer_kernel_sending();
}

/// Two ends over TCP, before their handshake.
inline task<two_ends> tcp_ends(tls::context for_client, tls::context for_server) {
    auto sockets = co_await tcp_pair();
    co_return two_ends(std::move(sockets), for_client, for_server);
}

/// A server whose kernel sends, and a client that is as usual, after the handshake.
inline task<two_ends> kernel_ends() {
    two_ends both = co_await tcp_ends(client_context(), kernel_server_context());
    co_await expect_handshake(both);
    EXPECT_TRUE(both.server.kernel_sends()) << both.server.kernel_refusal();
    EXPECT_FALSE(both.client.kernel_sends());
    co_return both;
}

/// Runs a task in a context whose kernel encrypts, as far as the plan says.
inline std::shared_ptr<kernel_plan> make_plan() { return std::make_shared<kernel_plan>(); }
inline void run_with(const std::shared_ptr<kernel_plan>& plan, task<> main) {
    coil::run(std::move(main), kernel_double::options(plan));
}

inline task<coil::fs::file> file_with(std::string text) {
    coil::fs::file file(::memfd_create("tls", MFD_CLOEXEC));
    EXPECT_EQ(co_await file.write_all_at(text, 0), static_cast<int>(text.size()));
    co_return file;
}

template <class Stream>
task<> send_text(Stream& to, const std::string& text) {
    EXPECT_EQ(co_await coil::write_all(to, text), static_cast<int>(text.size())) << to.last_error();
    EXPECT_EQ(co_await to.shutdown_write(), 0);
}

template <class Stream>
task<> expect_text(Stream& from, const std::string& text) {
    const std::string got = co_await read_to_end(from);
    EXPECT_TRUE(got == text) << got.size() << " of " << text.size();
}

/// Sends the text in both directions at once, up to close_notify.
inline task<> exchange_text(two_ends& both, const std::string& text) {
    co_await coil::when_all(send_text(both.client, text), expect_text(both.client, text),
                            send_text(both.server, text), expect_text(both.server, text));
}

} // namespace tls_test
