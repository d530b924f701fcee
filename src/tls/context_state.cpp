#include "context_state.hpp"

#include "error_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace coil::tls::detail {

namespace {

constexpr std::uint64_t refused = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION
// Decompressing certificates costs several hundred KiB for each handshake.
#ifdef SSL_OP_NO_TX_CERTIFICATE_COMPRESSION
                                  | SSL_OP_NO_TX_CERTIFICATE_COMPRESSION |
                                  SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
#endif
    ;

/// OpenSSL copies a chain, also an empty one, for each connection.
stack_st_X509* chain_of(const identity& own) {
    return sk_X509_num(own.chain.get()) > 0 ? own.chain.get() : nullptr;
}

std::string lower_case(std::string_view name) {
    std::string result(name);
    std::ranges::transform(result, result.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return result;
}

} // namespace

context_state::context_state(bool is_server)
    : ssl_context_(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method())),
      is_server_(is_server) {
    if (!ssl_context_) {
        throw_failure("cannot create a context");
    }
    SSL_CTX* const c = ssl_context();
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_options(c, refused);
    // An idle connection then holds no buffers, and a write may be repeated with other memory.
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // No cache: a server's sessions are in tickets, a client's in tls::session.
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_cert_cb(c, choose_certificate, this);
    if (is_server) {
        // Without it, sessions of clients with certificates cannot be resumed.
        constexpr unsigned char name[] = {'c', 'o', 'i', 'l'};
        SSL_CTX_set_session_id_context(c, name, sizeof name);
        SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE);
        SSL_CTX_set_alpn_select_cb(c, choose_protocol, this);
    } else {
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
        if (SSL_CTX_set_default_verify_paths(c) != 1) {
            throw_failure("cannot read the system's trust store");
        }
    }
}

void context_state::set_alpn(std::string wire_format) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(wire_format.data());
    if (!is_server_ && SSL_CTX_set_alpn_protos(ssl_context(), bytes,
                                               static_cast<unsigned>(wire_format.size())) != 0) {
        throw std::bad_alloc();
    }
    protocols_ = std::move(wire_format);
}

void context_state::use(std::string_view name, const certificate& own) {
    const std::lock_guard held(identities_lock_);
    identities_.insert_or_assign(lower_case(name), own.identity_);
}

void context_state::use_from_the_start(const certificate& own) {
    use("", own);
    const identity& its = *own.identity_;
    if (SSL_CTX_use_cert_and_key(ssl_context(), its.certificate.get(), its.key.get(), chain_of(its),
                                 1) == 1) {
        inherited_ = own.identity_;
    } // otherwise the handshakes report the error
}

void context_state::trust(BIO& authorities, const std::string& name) {
    const owned_chain all = read_certificates(authorities, name);
    if (!std::exchange(trusts_own_store_, true)) {
        X509_STORE* const store = X509_STORE_new();
        if (store == nullptr) {
            throw std::bad_alloc();
        }
        SSL_CTX_set_cert_store(ssl_context(), store); // takes ownership
    }
    X509_STORE* const store = SSL_CTX_get_cert_store(ssl_context());
    for (int i = 0; i < sk_X509_num(all.get()); ++i) {
        X509* const authority = sk_X509_value(all.get(), i);
        // A server sends the names of its trusted authorities to clients.
        if (X509_STORE_add_cert(store, authority) != 1 ||
            (is_server_ && SSL_CTX_add_client_CA(ssl_context(), authority) != 1)) {
            throw_failure("cannot trust an authority of " + name);
        }
    }
}

void context_state::require_client_certificates() {
    SSL_CTX_set_verify(ssl_context(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

int context_state::choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                                   const unsigned char* in, unsigned in_size, void* self) noexcept {
    const std::string& ours = static_cast<context_state*>(self)->protocols_;
    if (ours.empty()) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    unsigned char* chosen = nullptr;
    const int result = SSL_select_next_proto(&chosen, out_size,
                                             reinterpret_cast<const unsigned char*>(ours.data()),
                                             static_cast<unsigned>(ours.size()), in, in_size);
    *out = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

context_state::shared_identity context_state::find(std::string_view name) {
    const std::string wanted = lower_case(name);
    const std::lock_guard held(identities_lock_);
    auto found = identities_.find(wanted);
    if (const std::size_t dot = wanted.find('.');
        found == identities_.end() && dot != std::string::npos) {
        found = identities_.find("*" + wanted.substr(dot));
    }
    if (found == identities_.end()) {
        found = identities_.find("");
    }
    return found == identities_.end() ? nullptr : found->second;
}

/// Called in each handshake that needs a certificate. Returns 1 to continue, without a certificate
/// if there is none.
int context_state::choose_certificate(SSL* ssl, void* self) noexcept {
    try {
        auto& state = *static_cast<context_state*>(self);
        const char* const asked =
            state.is_server_ ? SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) : nullptr;
        const shared_identity own = state.find(asked == nullptr ? "" : asked);
        if (!own) {
            return 1;
        }
        // Called again for a second ClientHello. The first call may have chosen another one.
        if (own == state.inherited_ && SSL_get_certificate(ssl) == own->certificate.get()) {
            return 1;
        }
        if (state.inherited_) {
            SSL_certs_clear(ssl); // one with another type of key would remain beside `own`
        }
        const int used =
            SSL_use_cert_and_key(ssl, own->certificate.get(), own->key.get(), chain_of(*own), 1);
        return used == 1 ? 1 : 0;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

} // namespace coil::tls::detail
