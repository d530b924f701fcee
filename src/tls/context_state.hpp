#pragma once

#include "owned.hpp"

#include <coil/tls/certificate.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace coil::tls::detail {

/// The state shared by the copies of a context. Connections keep it alive as well, because
/// OpenSSL's callbacks refer to it.
class context_state {
public:
    explicit context_state(bool is_server);
    context_state(const context_state&) = delete;
    context_state& operator=(const context_state&) = delete;

    [[nodiscard]] SSL_CTX* ssl_context() const noexcept { return ssl_context_.get(); }
    [[nodiscard]] bool is_server() const noexcept { return is_server_; }
    [[nodiscard]] bool verifies() const noexcept {
        return SSL_CTX_get_verify_mode(ssl_context()) != SSL_VERIFY_NONE;
    }

    void set_alpn(std::string wire_format);
    /// Sets the certificate for this name; an empty name is the default.
    void use(std::string_view name, const certificate& own);
    /// The same for the default certificate of a context that no other thread uses yet. As long as
    /// it is not replaced, handshakes need not set a certificate.
    void use_from_the_start(const certificate& own);
    void trust(BIO& authorities, const std::string& name);
    void require_client_certificates();
    void prefer_kernel_sending() noexcept { prefers_kernel_sending_ = true; }
    [[nodiscard]] bool prefers_kernel_sending() const noexcept { return prefers_kernel_sending_; }

private:
    using shared_identity = std::shared_ptr<const identity>;

    static int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                               const unsigned char* in, unsigned in_size, void* self) noexcept;
    static int choose_certificate(SSL* ssl, void* self) noexcept;
    [[nodiscard]] shared_identity find(std::string_view name);

    owned_context ssl_context_;
    bool is_server_;
    bool trusts_own_store_ = false;
    bool prefers_kernel_sending_ = false;
    std::string protocols_; // in wire format: each preceded by its length
    // Certificates may be replaced while other threads make handshakes, so the SSL_CTX has at most
    // the first one, which connections inherit; each handshake takes the current one.
    shared_identity inherited_;
    std::mutex identities_lock_;
    std::map<std::string, shared_identity, std::less<>> identities_; // by lower-case name
};

} // namespace coil::tls::detail
