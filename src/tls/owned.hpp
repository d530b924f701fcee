#pragma once

// Owners of OpenSSL's objects.

#include <coil/base/freed_by.hpp>

#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace coil::tls::detail {

using coil::detail::freed_by;

inline void free_chain(STACK_OF(X509) * chain) noexcept { sk_X509_pop_free(chain, X509_free); }

using owned_bio = std::unique_ptr<BIO, freed_by<BIO_free>>;
using owned_certificate = std::unique_ptr<X509, freed_by<X509_free>>;
using owned_chain = std::unique_ptr<STACK_OF(X509), freed_by<free_chain>>;
using owned_key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using owned_context = std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>>;

/// A certificate, its key, and the certificates between it and an authority.
struct identity {
    owned_certificate certificate;
    owned_chain chain;
    owned_key key;
};

// If reading fails, open_file() and read_certificates() throw a std::system_error whose message
// contains the name.
owned_bio open_file(const std::string& file);
owned_bio open_text(std::string_view text);
owned_chain read_certificates(BIO& from, const std::string& name);

} // namespace coil::tls::detail
