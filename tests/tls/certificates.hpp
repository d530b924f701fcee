#pragma once

// Certificates for tests, made with OpenSSL.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace tls_test {

using key_ptr = std::shared_ptr<EVP_PKEY>;
using x509_ptr = std::shared_ptr<X509>;

/// A certificate and its key, which may sign others.
struct issued {
    x509_ptr certificate;
    key_ptr key;

    [[nodiscard]] std::string certificate_pem() const {
        return text([&](BIO* to) { PEM_write_bio_X509(to, certificate.get()); });
    }
    [[nodiscard]] std::string key_pem() const {
        return text([&](BIO* to) {
            PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
        });
    }

private:
    template <class Print>
    static std::string text(Print print) {
        const std::unique_ptr<BIO, decltype(&BIO_free)> to(BIO_new(BIO_s_mem()), BIO_free);
        print(to.get());
        char* data = nullptr;
        const long size = BIO_get_mem_data(to.get(), &data);
        return {data, static_cast<std::size_t>(size)};
    }
};

inline void add_extension(X509& to, X509& issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, &issuer, &to, nullptr, nullptr, 0);
    X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    if (e == nullptr) {
        throw std::logic_error("no extension " + value);
    }
    X509_add_ext(&to, e, -1);
    X509_EXTENSION_free(e);
}

/// `alternative`: subject alternative names such as "DNS:example.org"; empty for an authority.
/// `issuer`: null for a self-signed one. `days`: how long it is valid; negative if it has expired.
/// `key`: by default one for ECDSA.
inline issued issue(const std::string& name, const std::string& alternative, const issued* issuer,
                    int days = 30, EVP_PKEY* key = EVP_EC_gen("P-256")) {
    issued made;
    made.key = key_ptr(key, EVP_PKEY_free);
    made.certificate = x509_ptr(X509_new(), X509_free);
    X509& c = *made.certificate;
    static int serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(&c), ++serial);
    X509_set_version(&c, 2);
    constexpr long day = 24 * 60 * 60;
    X509_gmtime_adj(X509_getm_notBefore(&c), -60 * day);
    X509_gmtime_adj(X509_getm_notAfter(&c), days * day);
    X509_set_pubkey(&c, made.key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(&c), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509& by = issuer == nullptr ? c : *issuer->certificate;
    X509_set_issuer_name(&c, X509_get_subject_name(&by));
    if (alternative.empty()) {
        add_extension(c, by, NID_basic_constraints, "critical,CA:TRUE");
        add_extension(c, by, NID_key_usage, "critical,keyCertSign,cRLSign");
    } else {
        add_extension(c, by, NID_basic_constraints, "critical,CA:FALSE");
        add_extension(c, by, NID_subject_alt_name, alternative);
    }
    add_extension(c, by, NID_subject_key_identifier, "hash");
    X509_sign(&c, (issuer == nullptr ? made : *issuer).key.get(), EVP_sha256());
    return made;
}

/// The certificates that most tests use.
struct authority {
    issued root = issue("coil test authority", "", nullptr);
    issued server = issue("example.test", "DNS:example.test,DNS:*.wild.test,IP:127.0.0.1", &root);
    issued client = issue("client", "DNS:client.test", &root);
};

inline const authority& certificates() {
    static const authority made;
    return made;
}

} // namespace tls_test
