#pragma once

#include "support/run.hpp"
#include "support/running_backend.hpp"
#include "tls/certificates.hpp"

#include <coil/coil.hpp>
#include <coil/sim/for_each_seed.hpp>
#include <coil/sim/world.hpp>
#include <coil/tls.hpp>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace tls_test {

namespace tls = coil::tls;
namespace net = coil::net;
using coil::io_result;
using coil::task;
using namespace std::chrono_literals;

inline tls::certificate as_certificate(const issued& i) {
    return tls::certificate::from_pem(i.certificate_pem(), i.key_pem());
}
inline tls::context server_context() {
    return tls::context::server(as_certificate(certificates().server));
}
inline tls::context client_context() {
    tls::context ctx = tls::context::client();
    ctx.trust_pem(certificates().root.certificate_pem());
    return ctx;
}

/// Two ends of a connection, before their handshake.
struct two_ends {
    explicit two_ends(const tls::context& for_client, const tls::context& for_server)
        : two_ends(net::socket::pair(), for_client, for_server) {}
    two_ends() : two_ends(client_context(), server_context()) {}

    two_ends(std::pair<net::socket, net::socket> sockets, const tls::context& for_client,
             const tls::context& for_server)
        : client(std::move(sockets.first), for_client),
          server(std::move(sockets.second), for_server) {}

    tls::stream client;
    tls::stream server;
};

inline task<io_result> as_server(tls::stream& s) { co_return co_await s.accept(); }
inline task<io_result> as_client(tls::stream& s, std::string name) {
    co_return co_await s.handshake(std::move(name));
}

/// The results of both handshakes: the client's, the server's.
inline task<std::pair<int, int>> shake(two_ends& both, std::string name = "example.test") {
    auto serving = coil::spawn(as_server(both.server));
    const int client = co_await both.client.handshake(std::move(name));
    if (client < 0) {
        (co_await both.client.transport().shutdown_write());
    }
    const int server = co_await serving;
    co_return std::pair(client, server);
}

/// Performs the handshake and expects it to succeed on both sides.
inline task<> expect_handshake(two_ends& both, std::string name = "example.test") {
    const auto [client, server] = co_await shake(both, std::move(name));
    EXPECT_EQ(client, 0) << both.client.last_error();
    EXPECT_EQ(server, 0) << both.server.last_error();
}

inline std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = static_cast<char>(i * 7 + i / 253);
    }
    return text;
}

/// Reads up to the end of the stream, which close_notify must announce.
template <class Stream>
task<std::string> read_to_end(Stream& from) {
    std::string all;
    char buf[5000];
    for (;;) {
        const int n = co_await from.read_some(buf);
        if (n <= 0) {
            EXPECT_EQ(n, 0) << from.last_error();
            co_return all;
        }
        all.append(buf, static_cast<std::size_t>(n));
    }
}

/// Reads exactly this many bytes.
template <class Stream>
task<std::string> read_exactly(Stream& from, std::size_t size) {
    std::string all(size, '\0');
    std::size_t done = 0;
    while (done < size) {
        const int n = co_await from.read_some({all.data() + done, size - done});
        if (n <= 0) {
            ADD_FAILURE() << n << ' ' << from.last_error();
            break;
        }
        done += static_cast<std::size_t>(n);
    }
    co_return all;
}

} // namespace tls_test
