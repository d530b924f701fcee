#pragma once

#include "support/server_process.hpp"
#include "tls/pem_files.hpp"
#include "tls/support.hpp"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace tls_peers_test {

using namespace tls_test;
using adapter_test::free_port;
using adapter_test::server_process;
using coil::process;

/// Skips the test if a program of another TLS implementation is not installed.
#define TLS_PEERS_NEED(program, package)                                                           \
    if (!adapter_test::has_program(program)) {                                                     \
        GTEST_SKIP() << (program) << " is not installed (package " << (package) << ")";            \
    }

/// A configuration whose connections have this version only: "1.2" or "1.3".
inline tls::context with_version(tls::context ctx, const std::string& version) {
    const tls::version only = version == "1.2" ? tls::version::tls_1_2 : tls::version::tls_1_3;
    ctx.set_versions(only, only);
    return ctx;
}

inline task<tls::stream> connect_to(std::uint16_t port, const tls::context& ctx) {
    net::socket socket = net::socket::create_tcp();
    const int connected =
        co_await socket.connect(net::endpoint("127.0.0.1:" + std::to_string(port)));
    EXPECT_EQ(connected, 0);
    co_return tls::stream(std::move(socket), ctx);
}

/// Lines of text: gnutls-serv sends back lines.
inline std::string lines(std::size_t size) {
    std::string text(size, 'x');
    for (std::size_t i = 99; i < size; i += 100) {
        text[i] = '\n';
    }
    text.back() = '\n';
    return text;
}

/// Sends `size` bytes while it receives them from a peer that sends them back.
inline task<> echo(tls::stream& s, std::size_t size) {
    const std::string sent = lines(size);
    auto writing = coil::spawn(coil::write_all(s, sent));
    const std::string got = co_await coil::timeout(read_exactly(s, size), 30s);
    EXPECT_EQ(co_await coil::timeout(std::move(writing), 30s), static_cast<int>(size));
    EXPECT_TRUE(got == sent);
}

/// Sends everything back until the peer's close_notify, then closes as well. Returns the number of
/// bytes.
inline task<std::size_t> send_back(tls::stream& s) {
    std::vector<char> buf(20000);
    std::size_t size = 0;
    for (;;) {
        const int n = co_await coil::timeout(s.read_some(buf), 30s);
        EXPECT_GE(n, 0) << s.last_error();
        if (n <= 0) {
            break;
        }
        EXPECT_EQ(co_await coil::write_all(s, {buf.data(), static_cast<std::size_t>(n)}), n);
        size += static_cast<std::size_t>(n);
    }
    EXPECT_EQ(co_await coil::timeout(s.shutdown(), 30s), 0) << s.last_error();
    co_return size;
}

} // namespace tls_peers_test
