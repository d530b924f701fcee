#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <linux/tls.h>
#include <openssl/evp.h>

namespace tls_test {

/// Makes TLS records with the keys of TLS_TX, as the kernel does: AES-GCM and ChaCha20-Poly1305 of
/// TLS 1.2 and 1.3.
class record_writer {
public:
    /// The size of the structure with these keys; 0 for an unknown cipher.
    static std::size_t size_of(const void* keys) {
        switch (head_of(keys).cipher_type) {
        case TLS_CIPHER_AES_GCM_128:
            return sizeof(::tls12_crypto_info_aes_gcm_128);
        case TLS_CIPHER_AES_GCM_256:
            return sizeof(::tls12_crypto_info_aes_gcm_256);
        case TLS_CIPHER_CHACHA20_POLY1305:
            return sizeof(::tls12_crypto_info_chacha20_poly1305);
        default:
            return 0;
        }
    }

    explicit record_writer(const void* keys) : is_1_3_(head_of(keys).version == TLS_1_3_VERSION) {
        const auto cipher = head_of(keys).cipher_type;
        chacha_ = cipher == TLS_CIPHER_CHACHA20_POLY1305;
        if (cipher == TLS_CIPHER_AES_GCM_128) {
            ::tls12_crypto_info_aes_gcm_128 k;
            std::memcpy(&k, keys, sizeof k);
            take(EVP_aes_128_gcm(), k);
        } else if (cipher == TLS_CIPHER_AES_GCM_256) {
            ::tls12_crypto_info_aes_gcm_256 k;
            std::memcpy(&k, keys, sizeof k);
            take(EVP_aes_256_gcm(), k);
        } else {
            ::tls12_crypto_info_chacha20_poly1305 k;
            std::memcpy(&k, keys, sizeof k);
            take(EVP_chacha20_poly1305(), k);
        }
    }

    /// A record with this content.
    std::string record(unsigned char type, std::string_view content) {
        std::string plain(content);
        std::string nonce = iv_;
        std::string explicit_nonce;
        const bool tls_1_2_gcm = !is_1_3_ && !chacha_;
        if (tls_1_2_gcm) {
            explicit_nonce = iv_.substr(4);
            std::uint64_t n = number(explicit_nonce);
            iv_.replace(4, 8, bytes(n + 1)); // of the next record
        } else {
            const std::string position = bytes(sequence_);
            for (std::size_t i = 0; i < 8; ++i) {
                nonce[4 + i] = static_cast<char>(nonce[4 + i] ^ position[i]);
            }
        }
        if (is_1_3_) {
            plain += static_cast<char>(type);
        }
        const std::size_t size = explicit_nonce.size() + plain.size() + tag_size;
        const std::string header{static_cast<char>(is_1_3_ ? 23 : type), 3, 3,
                                 static_cast<char>(size >> 8), static_cast<char>(size)};
        const std::string authenticated = is_1_3_ ? header
                                                  : bytes(sequence_) + header.substr(0, 3) +
                                                        static_cast<char>(plain.size() >> 8) +
                                                        static_cast<char>(plain.size());
        ++sequence_;
        return header + explicit_nonce + encrypt(plain, nonce, authenticated);
    }

private:
    static constexpr std::size_t tag_size = 16;

    static ::tls_crypto_info head_of(const void* keys) {
        ::tls_crypto_info head{};
        std::memcpy(&head, keys, sizeof head);
        return head;
    }
    static std::uint64_t number(std::string_view eight) {
        std::uint64_t n = 0;
        for (const char c : eight) {
            n = n << 8 | static_cast<unsigned char>(c);
        }
        return n;
    }
    static std::string bytes(std::uint64_t n) {
        std::string text(8, '\0');
        for (std::size_t i = 8; i-- > 0; n >>= 8) {
            text[i] = static_cast<char>(n);
        }
        return text;
    }

    template <class Keys>
    void take(const EVP_CIPHER* cipher, const Keys& k) {
        cipher_ = cipher;
        key_.assign(reinterpret_cast<const char*>(k.key), sizeof k.key);
        iv_.assign(reinterpret_cast<const char*>(k.salt), sizeof k.salt);
        iv_.append(reinterpret_cast<const char*>(k.iv), sizeof k.iv);
        sequence_ = number({reinterpret_cast<const char*>(k.rec_seq), sizeof k.rec_seq});
    }

    std::string encrypt(const std::string& plain, const std::string& nonce,
                        const std::string& authenticated) const {
        const auto in = [](const std::string& s) {
            return reinterpret_cast<const unsigned char*>(s.data());
        };
        std::string out(plain.size() + tag_size, '\0');
        auto* const to = reinterpret_cast<unsigned char*>(out.data());
        EVP_CIPHER_CTX* const c = EVP_CIPHER_CTX_new();
        int n = 0;
        const bool done =
            EVP_EncryptInit_ex(c, cipher_, nullptr, in(key_), in(nonce)) == 1 &&
            EVP_EncryptUpdate(c, nullptr, &n, in(authenticated),
                              static_cast<int>(authenticated.size())) == 1 &&
            EVP_EncryptUpdate(c, to, &n, in(plain), static_cast<int>(plain.size())) == 1 &&
            EVP_EncryptFinal_ex(c, to + n, &n) == 1 &&
            EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, tag_size, to + plain.size()) == 1;
        EVP_CIPHER_CTX_free(c);
        if (!done) {
            std::abort();
        }
        return out;
    }

    bool is_1_3_;
    bool chacha_ = false;
    const EVP_CIPHER* cipher_ = nullptr;
    std::string key_;
    std::string iv_; // 12 bytes: salt, then iv
    std::uint64_t sequence_ = 0;
};

} // namespace tls_test
