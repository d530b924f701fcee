#include "bio.hpp"
#include "context_state.hpp"
#include "error_queue.hpp"

#include <coil/base/assert.hpp>
#include <coil/tls/detail/engine.hpp>

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace coil::tls::detail {

engine::engine(const context& ctx) : context_(ctx.state_) {
    const error_scope errors;
    ssl_ = SSL_new(context_->ssl_context());
    BIO* const bio = ssl_ == nullptr ? nullptr : make_bio(*this);
    if (bio == nullptr) {
        SSL_free(ssl_);
        throw std::bad_alloc();
    }
    SSL_set_bio(ssl_, bio, bio); // takes ownership
}

engine::~engine() {
    const error_scope errors;
    SSL_free(ssl_);
}

int engine::begin_client(std::string&& name) {
    if (side_ != side::none) {
        return side_ == side::client ? 0 : -EINVAL;
    }
    const bool verifies = SSL_get_verify_mode(ssl_) != SSL_VERIFY_NONE;
    if (context_->is_server() || (name.empty() && verifies)) {
        return -EINVAL;
    }
    const error_scope errors;
    X509_VERIFY_PARAM* const parameters = SSL_get0_param(ssl_);
    if (!name.empty() && X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) != 1) {
        if (name.back() == '.') {
            name.pop_back(); // certificates and SNI do not have the trailing dot of a fully
                             // qualified name
        }
        SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (name.find('\0') != std::string::npos || name.empty() ||
            SSL_set1_host(ssl_, name.c_str()) != 1 ||
            SSL_set_tlsext_host_name(ssl_, name.c_str()) != 1) {
            return -EINVAL;
        }
    }
    // A resumed connection is not verified again: a session of another name, or one that was never
    // verified, must not replace the verification.
    rare_state& kept = rare();
    const tls::session& offered = kept.offered;
    if (offered && offered.name_ == name && (offered.verified_ || !verifies)) {
        SSL_set_session(ssl_, offered.session_.get()); // a full handshake if this fails
    }
    kept.name = std::move(name);
    side_ = side::client;
    SSL_set_connect_state(ssl_);
    return 0;
}

int engine::begin_server() {
    if (side_ != side::none) {
        return side_ == side::server ? 0 : -EINVAL;
    }
    if (!context_->is_server()) {
        return -EINVAL;
    }
    side_ = side::server;
    SSL_set_accept_state(ssl_);
    return 0;
}

step engine::handshake() noexcept {
    check_context();
    if (failure_ < 0) {
        return {io_result(failure_)};
    }
    const error_scope errors;
    const int result = SSL_do_handshake(ssl_);
    if (result != 1) {
        return outcome(result);
    }
    if (!established_) {
        established_ = true;
        wants_large_ = false;
        // In TLS 1.2 the output is the server's Finished message, for which the client waits.
        only_tickets_ = has_output() && side_ == side::server && !kernel_ &&
                        SSL_version(ssl_) == TLS1_3_VERSION;
        if (kernel_ && !kernel_->active()) {
            kernel_->refuse("OpenSSL does not hand the keys of this cipher to a kernel");
        }
    }
    return {};
}

step engine::read(mutable_buffer to) noexcept {
    check_context();
    if (const io_result refused = refusal(); refused < 0) {
        return {refused};
    }
    const error_scope errors;
    std::size_t n = 0;
    const int result = SSL_read_ex(ssl_, to.data(), coil::detail::transfer_size(to.size()), &n);
    return result == 1 ? step{io_result(static_cast<int>(n))} : outcome(result);
}

step engine::write(const_buffer from) noexcept {
    COIL_ASSERT(from.size() > 0 && from.size() <= largest_write);
    check_context();
    if (const io_result refused = write_refusal(); refused < 0) {
        return {refused};
    }
    // Enough for the records, so that the queue does not grow by copying.
    constexpr std::size_t for_record = 128;
    if (!pending_.reserve(from.size() +
                          for_record * (2 + from.size() / SSL3_RT_MAX_PLAIN_LENGTH))) {
        return {io_result(-ENOMEM)};
    }
    const error_scope errors;
    std::size_t n = 0;
    const int result = SSL_write_ex(ssl_, from.data(), from.size(), &n);
    if (result == 1) {
        COIL_ASSERT(n == from.size());
        return {io_result(static_cast<int>(n))};
    }
    return outcome(result);
}

step engine::close() noexcept {
    check_context();
    if (const io_result refused = refusal(); refused < 0) {
        return {refused};
    }
    if ((SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) != 0) {
        return {};
    }
    const error_scope errors;
    if (SSL_in_init(ssl_) != 0) {
        // OpenSSL is in the middle of a post-handshake message, which must be received first.
        if (const int result = SSL_do_handshake(ssl_); result != 1) {
            return outcome(result);
        }
    }
    const int result = SSL_shutdown(ssl_);
    return result >= 0 ? step{} : outcome(result);
}

step engine::update_keys() noexcept {
    check_context();
    if (const io_result refused = refusal(); refused < 0) {
        return {refused};
    }
    if (SSL_version(ssl_) != TLS1_3_VERSION || kernel_sends()) {
        return {io_result(-EOPNOTSUPP)};
    }
    const error_scope errors;
    if (SSL_get_key_update_type(ssl_) == SSL_KEY_UPDATE_NONE &&
        SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED) != 1) {
        return {io_result(-EAGAIN)};
    }
    const int result = SSL_do_handshake(ssl_);
    return result == 1 ? step{} : outcome(result);
}

/// Why the connection cannot transfer data, or 0.
io_result engine::refusal() const noexcept {
    if (failure_ < 0) {
        return io_result(failure_);
    }
    return io_result(established_ ? 0 : -ENOTCONN);
}

/// Interprets a call of OpenSSL that has not succeeded.
step engine::outcome(int result) noexcept {
    if (failure_ < 0) {
        return {io_result(failure_)}; // coil has ended the connection during the call
    }
    switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
        return {io_result(0), true};
    case SSL_ERROR_ZERO_RETURN:
        return {};
    default:
        break;
    }
    if (no_memory_) {
        return {io_result(fail(-ENOMEM, "out of memory"))};
    }
    const unsigned long error = ERR_peek_error();
    const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        const char* const when =
            established_ ? "the connection ended without close_notify, the data may be truncated"
                         : "the peer closed the connection during the handshake";
        return {io_result(fail(-ECONNABORTED, when))};
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        return {io_result(fail(-EKEYREJECTED, "the certificate of the peer is not valid",
                               X509_verify_cert_error_string(SSL_get_verify_result(ssl_))))};
    }
    return {io_result(fail(-EPROTO, reason_of(error).text()))};
}

/// Ends the connection for all later calls, and returns `error`.
int engine::fail(int error, std::string_view why, const char* detail) noexcept {
    failure_ = error;
    try {
        std::string sentence = "coil: TLS: ";
        sentence += why;
        if (detail != nullptr) {
            sentence += ": ";
            sentence += detail;
        }
        rare().last_error = std::move(sentence);
    } catch (const std::bad_alloc&) {
        return error; // without a sentence
    }
    return error;
}

const std::string& engine::last_error() const noexcept {
    static const std::string none;
    return rare_ ? rare_->last_error : none;
}

mutable_buffer engine::input_room() noexcept {
    COIL_ASSERT(input_begin_ == input_end_);
    if (!wants_large_) {
        large_.reset();
    } else if (!large_) {
        large_.reset(new (std::nothrow)
                         std::byte[large_input]); // without memory the small buffer is used
    }
    input_begin_ = input_end_ = 0;
    if (large_) {
        return {large_.get(), large_input};
    }
    return {small_.data(), small_.size()};
}

void engine::received(std::size_t size) noexcept {
    ++inputs_;
    input_end_ = static_cast<std::uint32_t>(size);
    input_ended_ = size == 0;
    // A peer that fills the small buffer probably has more to send. A connection that receives less
    // waits without a large buffer.
    wants_large_ = size >= small_input || !established_;
}

const_buffer engine::output() noexcept {
    if (sending_.empty()) {
        std::swap(sending_, pending_);
    }
    const const_buffer all = sending_.bytes();
    return kernel_ ? const_buffer(all.data(), kernel_->same_type(all.size())) : all;
}

/// OpenSSL's object is not thread-safe.
void engine::check_context() const noexcept {
    if (transfers_ > 0 && user_ != coil::detail::current_loop) [[unlikely]] {
        coil::detail::end_with_misuse(
            "a tls::stream is used on a context while another one uses it.");
    }
}

void engine::begin_transfer() noexcept {
    check_context();
    ++transfers_;
    user_ = coil::detail::current_loop;
}

void engine::lose_transfer() noexcept {
    sending_.clear();
    pending_.clear();
    if (kernel_) {
        kernel_->forget_output();
    }
    if (failure_ == 0) {
        fail(-EPROTO, "a coroutine was destroyed in the middle of a transfer");
    }
}

bool engine::resumed() const noexcept { return established_ && SSL_session_reused(ssl_) == 1; }

std::string_view engine::alpn() const noexcept {
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    return {reinterpret_cast<const char*>(protocol), size};
}

std::string_view engine::server_name() const noexcept {
    const char* const name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
    return name == nullptr ? std::string_view() : std::string_view(name);
}

std::string_view engine::version() const noexcept {
    return established_ ? SSL_get_version(ssl_) : std::string_view();
}

std::string_view engine::cipher() const noexcept {
    return established_ ? SSL_get_cipher_name(ssl_) : std::string_view();
}

std::string engine::peer_subject() const {
    const error_scope errors;
    X509* const peer = SSL_get0_peer_certificate(ssl_);
    if (peer == nullptr) {
        return {};
    }
    const owned_bio text(BIO_new(BIO_s_mem()));
    if (!text || X509_NAME_print_ex(text.get(), X509_get_subject_name(peer), 0,
                                    XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) < 0) {
        throw std::bad_alloc();
    }
    char* data = nullptr;
    const long size = BIO_get_mem_data(text.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

tls::session engine::session() const {
    const error_scope errors;
    SSL_SESSION* const current = SSL_get0_session(ssl_);
    if (!established_ || side_ != side::client || current == nullptr ||
        SSL_SESSION_is_resumable(current) != 1) {
        return {};
    }
    // A copy, because OpenSSL marks a session as not resumable if its connection ends without
    // close_notify.
    SSL_SESSION* const copy = SSL_SESSION_dup(current);
    if (copy == nullptr) {
        throw std::bad_alloc();
    }
    const bool verified =
        SSL_get_verify_mode(ssl_) != SSL_VERIFY_NONE && SSL_get_verify_result(ssl_) == X509_V_OK;
    return {std::shared_ptr<SSL_SESSION>(copy, SSL_SESSION_free), rare_->name, verified};
}

} // namespace coil::tls::detail
