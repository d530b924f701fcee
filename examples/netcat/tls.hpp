// netcat --tls. EXAMPLE_TLS is 0 if the examples were built without OpenSSL.
#pragma once

#include "streams.hpp"

#include <coil/coil.hpp>
#if EXAMPLE_TLS
#include <coil/tls.hpp>
#endif

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace netcat {

struct tls_options {
    bool enabled = false;
    bool unverified = false; // accept any certificate of the server
    std::string certificate; // the certificate file of a server
    std::string key;
};

#if EXAMPLE_TLS

/// Reads the certificate files. Contains the settings of every connection.
class tls_settings {
public:
    tls_settings(const tls_options& options, bool is_server)
        : context_(is_server ? tls::context::server(options.certificate, options.key)
                             : tls::context::client()) {
        if (options.unverified) {
            context_.allow_unverified_peers();
        }
    }

    /// For a client, `host` is the name that the server's certificate must have.
    task<> converse_with(net::socket socket, std::optional<std::string> host,
                         std::chrono::nanoseconds idle) const {
        constexpr auto limit = std::chrono::seconds(10);
        tls::stream peer{std::move(socket), context_};
        int error = 0;
        if (host) {
            error = co_await timeout(peer.handshake(*host), limit);
        } else {
            error = co_await timeout(peer.accept(), limit);
        }
        if (error < 0) {
            throw std::runtime_error(peer.last_error().empty()
                                         ? "TLS: " + io_result(error).error().message()
                                         : peer.last_error());
        }
        co_await converse(peer, {.idle = idle});
    }

private:
    tls::context context_;
};

#else

class tls_settings {
public:
    tls_settings(const tls_options&, bool) {
        throw std::runtime_error("--tls: this program was built without OpenSSL 3; install the "
                                 "package libssl-dev and build it again");
    }
    task<> converse_with(net::socket, std::optional<std::string>, std::chrono::nanoseconds) const {
        co_return;
    }
};

#endif

} // namespace netcat
