#include "context_state.hpp"

#include <coil/base/assert.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/io/file.hpp>
#include <coil/io/message.hpp>
#include <coil/tls/detail/engine.hpp>
#include <coil/tls/detail/kernel_sender.hpp>
#include <coil/uring/prep.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::tls::detail {

namespace {

constexpr int level_tls = 282; // SOL_TLS, which older C libraries lack
constexpr int option_ulp = 31; // TCP_ULP

/// The size of the structure that TLS_TX takes for this cipher, or 0.
::socklen_t size_of_keys(const void* keys) noexcept {
    ::tls_crypto_info head{};
    std::memcpy(&head, keys, sizeof head);
    switch (head.cipher_type) {
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

} // namespace

void kernel_sender::refuse(std::string_view why) noexcept {
    try {
        if (refusal_.empty()) {
            refusal_ = why;
        }
    } catch (const std::bad_alloc&) {
        return; // without a reason
    }
}

int kernel_sender::attach() noexcept {
    int protocol = 0;
    const int known = coil::detail::perform(
        uring::prep::getsockopt(fd_, SOL_SOCKET, SO_PROTOCOL, &protocol, sizeof protocol));
    if (fd_ < 0 || known < 0 || protocol != IPPROTO_TCP) {
        refuse("the transport is not a TCP socket");
        return -EOPNOTSUPP;
    }
    const int error = coil::detail::perform(
        uring::prep::setsockopt(fd_, IPPROTO_TCP, option_ulp, "tls", sizeof "tls" - 1));
    if (error == -ENOENT) {
        refuse("the kernel has no TLS (module tls)");
    } else if (error < 0) {
        refuse("the kernel refuses TLS on the socket: " + std::generic_category().message(-error));
    }
    return error;
}

int kernel_sender::set_keys(const void* keys) noexcept {
    const ::socklen_t size = size_of_keys(keys);
    if (size == 0) {
        refuse("OpenSSL hands over a cipher that coil does not know");
        return -EOPNOTSUPP;
    }
    const int error =
        coil::detail::perform(uring::prep::setsockopt(fd_, level_tls, TLS_TX, keys, size));
    if (error < 0) {
        refuse("the kernel refuses the cipher: " + std::generic_category().message(-error));
    }
    return error;
}

bool kernel_sender::announces_new_keys(const char* message, std::size_t size) const noexcept {
    return next_type_ == SSL3_RT_HANDSHAKE && size > 0 && *message == SSL3_MT_KEY_UPDATE;
}

bool kernel_sender::appended(std::size_t size) noexcept {
    const unsigned char type = next_type_;
    next_type_ = 0;
    if (type != 0) {
        try {
            messages_.push_back({appended_, appended_ + size, type});
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    appended_ += size;
    return true;
}

void kernel_sender::sent(std::size_t size) noexcept {
    if (!active_) {
        return;
    }
    sent_ += size;
    COIL_ASSERT(sent_ <= appended_);
    if (!messages_.empty() && messages_.front().end <= sent_) {
        messages_.erase(messages_.begin());
    }
}

void kernel_sender::forget_output() noexcept {
    messages_.clear();
    sent_ = appended_;
}

unsigned char kernel_sender::type() const noexcept {
    return !messages_.empty() && messages_.front().begin <= sent_ ? messages_.front().type : 0;
}

std::size_t kernel_sender::same_type(std::size_t size) const noexcept {
    if (messages_.empty()) {
        return size;
    }
    const message& next = messages_.front();
    const std::uint64_t end = next.begin <= sent_ ? next.end : next.begin;
    return std::min<std::size_t>(size, end - sent_);
}

task<io_result> send_record(int fd, unsigned char type, const_buffer bytes, int flags) {
    ::iovec part{const_cast<void*>(static_cast<const void*>(bytes.data())), bytes.size()};
    alignas(::cmsghdr) char control[CMSG_SPACE(sizeof type)] = {};
    ::msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = level_tls;
    header->cmsg_type = TLS_SET_RECORD_TYPE;
    header->cmsg_len = CMSG_LEN(sizeof type);
    std::memcpy(CMSG_DATA(header), &type, sizeof type);
    for (;;) {
        const int n = co_await io::sendmsg(fd, &message, flags);
        if (n != -EAGAIN || (flags & MSG_DONTWAIT) != 0) {
            co_return io_result(n);
        }
        if (const int error = co_await io::poll(fd, POLLOUT); error < 0) {
            co_return io_result(error);
        }
    }
}

void engine::offer_socket(int fd) {
    if (!context_->prefers_kernel_sending() || kernel_) {
        return;
    }
    kernel_ = std::make_unique<kernel_sender>(fd);
    SSL_set_options(ssl_, SSL_OP_ENABLE_KTLS);
}

std::string_view engine::kernel_refusal() const noexcept {
    return kernel_ ? kernel_->refusal() : std::string_view();
}

/// Called by OpenSSL's write. Returns false if the output cannot be appended.
bool engine::append_output(const char* from, std::size_t size) noexcept {
    if (kernel_sends() && kernel_->announces_new_keys(from, size)) {
        refuse_new_keys();
        return false;
    }
    // Space is reserved first, so that the record types noted by appended() always match the
    // output.
    if (!pending_.reserve(size) || (kernel_sends() && !kernel_->appended(size))) {
        no_memory_ = true;
        return false;
    }
    only_tickets_ = false;
    return pending_.append(from, size);
}

/// Ends the connection with an alert, for which the kernel's keys are still valid.
int engine::refuse_new_keys() noexcept {
    constexpr char alert[] = {SSL3_AL_FATAL, SSL_AD_INTERNAL_ERROR};
    kernel_->set_next_type(SSL3_RT_ALERT);
    if (pending_.reserve(sizeof alert) && kernel_->appended(sizeof alert)) {
        (void)pending_.append(alert, sizeof alert);
    }
    return fail(-EPROTO, "the peer requires new keys, which the kernel that sends cannot take");
}

io_result engine::write_refusal() noexcept {
    if (const io_result refused = refusal(); refused < 0) {
        return refused;
    }
    if ((SSL_get_shutdown(ssl_) & SSL_SENT_SHUTDOWN) != 0) {
        return io_result(-EPIPE);
    }
    // New keys would have to be announced before the next data (RFC 8446, 4.6.3).
    if (kernel_sends() && SSL_get_key_update_type(ssl_) != SSL_KEY_UPDATE_NONE) [[unlikely]] {
        return io_result(refuse_new_keys());
    }
    return io_result(0);
}

/// Called by OpenSSL when the keys of application data are known. What was encrypted before must be
/// sent before the kernel has the keys, and OpenSSL cannot wait. Returns false if the kernel does
/// not send; OpenSSL then continues to encrypt.
bool engine::start_kernel_sending(const void* keys) noexcept {
    if (!kernel_ || kernel_->active() || kernel_->attach() < 0) {
        return false;
    }
    if (!send_lock.try_lock()) {
        kernel_->refuse("an earlier part of the handshake is still being sent");
        return false;
    }
    const transfer_lock::guard held(send_lock);
    if (send_pending_now() < 0) {
        kernel_->refuse("the socket did not take the whole handshake at once");
        return false;
    }
    if (kernel_->set_keys(keys) < 0) {
        return false;
    }
    kernel_->activate();
    return true;
}

/// Sends the whole output without waiting: 0 or -errno.
io_result engine::send_pending_now() noexcept {
    while (has_output()) {
        const const_buffer bytes = output();
        // Only a socket of Linux has accepted TLS, so Linux is called.
        const ::ssize_t n =
            ::send(kernel_->fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) {
            return io_result(n == 0 ? -EIO : -errno);
        }
        sent(static_cast<std::size_t>(n));
    }
    return io_result(0);
}

} // namespace coil::tls::detail
