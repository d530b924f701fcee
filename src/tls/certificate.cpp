#include "error_queue.hpp"
#include "owned.hpp"

#include <coil/tls/certificate.hpp>

#include <climits>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include <openssl/pem.h>

namespace coil::tls {

namespace detail {

owned_bio open_file(const std::string& file) {
    owned_bio bio(BIO_new_file(file.c_str(), "r"));
    if (!bio) {
        throw_failure("cannot open " + file);
    }
    return bio;
}

owned_bio open_text(std::string_view text) {
    if (text.size() > INT_MAX) {
        throw std::length_error("coil: TLS: a PEM text is too long");
    }
    owned_bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    if (!bio) {
        throw std::bad_alloc();
    }
    return bio;
}

owned_chain read_certificates(BIO& from, const std::string& name) {
    owned_chain all(sk_X509_new_null());
    if (!all) {
        throw std::bad_alloc();
    }
    while (owned_certificate next{PEM_read_bio_X509(&from, nullptr, nullptr, nullptr)}) {
        X509* const added = next.release();
        if (sk_X509_push(all.get(), added) == 0) {
            X509_free(added);
            throw std::bad_alloc();
        }
    }
    // The end of the text is "no start line", which is an error only if there was no certificate.
    const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (sk_X509_num(all.get()) == 0 || !at_end) {
        throw_failure("no valid certificate in " + name);
    }
    ERR_clear_error();
    return all;
}

namespace {

/// Without this callback, OpenSSL would ask at the terminal for the password of an encrypted key.
int no_password(char*, int, int, void*) { return -1; }

std::shared_ptr<const identity> load(BIO& certificates, const std::string& certificate_name,
                                     BIO& key, const std::string& key_name) {
    auto loaded = std::make_shared<identity>();
    loaded->chain = read_certificates(certificates, certificate_name);
    loaded->certificate.reset(sk_X509_shift(loaded->chain.get()));
    loaded->key.reset(PEM_read_bio_PrivateKey(&key, nullptr, no_password, nullptr));
    if (!loaded->key) {
        throw_failure("no unencrypted private key in " + key_name);
    }
    if (X509_check_private_key(loaded->certificate.get(), loaded->key.get()) != 1) {
        throw_failure("the private key in " + key_name + " is not that of the certificate in " +
                      certificate_name);
    }
    return loaded;
}

} // namespace

} // namespace detail

certificate certificate::from_files(const std::string& certificate_file,
                                    const std::string& key_file) {
    const detail::error_scope errors;
    const detail::owned_bio chain = detail::open_file(certificate_file);
    const detail::owned_bio key = detail::open_file(key_file);
    return certificate(detail::load(*chain, certificate_file, *key, key_file));
}

certificate certificate::from_pem(std::string_view certificates, std::string_view key) {
    const detail::error_scope errors;
    const detail::owned_bio chain = detail::open_text(certificates);
    const detail::owned_bio key_text = detail::open_text(key);
    return certificate(detail::load(*chain, "a PEM text", *key_text, "a PEM text"));
}

} // namespace coil::tls
