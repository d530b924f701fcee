#pragma once

#include <coil/core/config.hpp>
#include <coil/tls/certificate.hpp>

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

struct ssl_ctx_st; // OpenSSL's SSL_CTX

namespace coil::tls {

namespace detail {

class engine;

} // namespace detail

/// A version of the protocol.
enum class version { tls_1_2, tls_1_3 };

/// The configuration of TLS connections: certificates, trusted certificate authorities (CAs),
/// protocols.
///
///     tls::context ctx = tls::context::client();       // trusts the system's CAs
///     ctx.set_alpn({"h2", "http/1.1"});
///     tls::stream s{std::move(socket), ctx};
///
/// Defaults: TLS 1.2 or newer, OpenSSL's ciphers, verified peers. Renegotiation, compression and
/// the compression of certificates are refused.
///
/// Copies share the configuration. Errors: the members throw std::system_error whose message names
/// the file and OpenSSL's reason.
///
/// Threading: streams may be constructed on any thread. use_certificate() and
/// use_certificate_for() may be called on any thread at any time; all other members that change the
/// configuration must be called before the first stream is constructed.
class context {
public:
    /// For clients. Verifies the server's certificate with the system's trust store.
    [[nodiscard]] static context client();
    /// For servers, with a certificate. Does not request certificates from clients.
    [[nodiscard]] static context server(const certificate& own);
    /// The same with the files of certificate::from_files().
    [[nodiscard]] static context server(const std::string& certificate_file,
                                        const std::string& key_file);

    /// Produce readable compiler errors.
    context() COIL_DELETE_COPY(
        "write tls::context::client(), or tls::context::server(certificate_file, key_file)");
    template <std::convertible_to<std::string> File>
    static context server(File&&) COIL_DELETE(
        "pass the files of the certificate and of its key: server(certificate_file, key_file)");
    template <std::convertible_to<std::string_view> Text>
    context& set_alpn(const Text&) COIL_DELETE("pass a list: set_alpn({\"h2\"})");

    /// The application protocols, in order of preference. A server refuses a client that offers
    /// only other protocols. Each has 1 to 255 bytes.
    context& set_alpn(std::initializer_list<std::string_view> protocols);
    /// The oldest and the newest version to accept. TLS 1.2 is the oldest that is supported.
    context& set_versions(version oldest, version newest = version::tls_1_3);

    /// Replaces the certificate of a server, or the one that a client presents to servers that
    /// request one. New connections use it; existing connections are not affected. Call it to
    /// reload a certificate that was renewed.
    context& use_certificate(const certificate& own);
    context& use_certificate(const std::string& certificate_file, const std::string& key_file);
    /// Sets a server's certificate for clients that request this name (SNI). "*.example.org" is
    /// used for every name with one more label. Clients that request another name get the
    /// certificate of use_certificate().
    context& use_certificate_for(std::string_view name, const certificate& own);

    /// Trusts the CAs in this PEM file or text. For a client, the first call replaces the system's
    /// trust store; further calls add CAs.
    context& trust_file(const std::string& authorities_file);
    context& trust_pem(std::string_view authorities);
    /// Makes a server refuse clients without a certificate that a trusted CA has signed. Call
    /// trust_file() or trust_pem() first.
    context& require_client_certificates();

    /// Switches verification off: a client then accepts every server, so that an attacker on the
    /// network can read and change everything. For tests.
    context& allow_unverified_peers();

    /// Asks the kernel to encrypt what connections send over TCP (kTLS), so that sendfile() does
    /// not copy the data to user space. OpenSSL still decrypts what is received. If the kernel
    /// cannot encrypt, OpenSSL does so as usual, and stream::kernel_refusal() says why.
    context& prefer_kernel_sending();

    /// OpenSSL's object, for settings that this class does not have.
    [[nodiscard]] ssl_ctx_st* native_handle() const noexcept;

private:
    friend class detail::engine;

    explicit context(std::shared_ptr<detail::context_state> state) noexcept;

    std::shared_ptr<detail::context_state> state_;
};

} // namespace coil::tls
