#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coil::tls::detail {

/// Sending on a socket for which the kernel encrypts (kTLS). OpenSSL's output is then plaintext:
/// application data, and messages of other types (alerts, handshake), which must be sent with their
/// record type. This object records where in the output these messages are.
class kernel_sender {
public:
    explicit kernel_sender(int fd) noexcept : fd_(fd) {}

    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] bool active() const noexcept { return active_; }
    void activate() noexcept { active_ = true; }
    /// Records why the kernel does not encrypt. Keeps the first reason.
    void refuse(std::string_view why) noexcept;
    [[nodiscard]] std::string_view refusal() const noexcept { return refusal_; }

    /// Sets the socket's TCP_ULP to "tls": 0, or -errno after calling refuse().
    int attach() noexcept;
    /// Passes the keys for sending to the kernel (TLS_TX, whose structure `keys` points to): 0, or
    /// -errno after calling refuse().
    int set_keys(const void* keys) noexcept;

    /// The type of the next message that OpenSSL writes; 0: application data.
    void set_next_type(unsigned char type) noexcept { next_type_ = type; }
    /// Whether this message, which OpenSSL writes, is a KeyUpdate.
    [[nodiscard]] bool announces_new_keys(const char* message, std::size_t size) const noexcept;
    /// Called when data or a message is appended to the output. Returns false if there is no memory
    /// to record it.
    bool appended(std::size_t size) noexcept;
    void sent(std::size_t size) noexcept;
    void forget_output() noexcept;

    /// The type of the output's first byte, and how many of its first `size` bytes have it.
    [[nodiscard]] unsigned char type() const noexcept;
    [[nodiscard]] std::size_t same_type(std::size_t size) const noexcept;

private:
    struct message {
        std::uint64_t begin; // positions in the output since activate()
        std::uint64_t end;
        unsigned char type;
    };

    int fd_;
    bool active_ = false;
    unsigned char next_type_ = 0;
    std::uint64_t appended_ = 0;
    std::uint64_t sent_ = 0;
    std::vector<message> messages_; // of other types than application data, not sent yet
    std::string refusal_;
};

/// Sends bytes as a record of this type on a socket that encrypts. Returns the number of bytes
/// sent, or -errno.
task<io_result> send_record(int fd, unsigned char type, const_buffer bytes, int flags);

} // namespace coil::tls::detail
