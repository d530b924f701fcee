#pragma once

#include <coil/context/detail/current_loop.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/tls/context.hpp>
#include <coil/tls/detail/byte_queue.hpp>
#include <coil/tls/detail/kernel_sender.hpp>
#include <coil/tls/detail/transfer_lock.hpp>
#include <coil/tls/session.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct bio_method_st;
struct bio_st;
struct ssl_st; // OpenSSL's SSL

namespace coil::tls::detail {

/// The outcome of a call of OpenSSL: a result, or the request for more bytes from the peer.
struct step {
    io_result result;
    bool wants_input = false;
};

/// TLS without I/O: its input is bytes from the peer, its output is bytes for the peer. A call of
/// OpenSSL never waits: it reads from the receive buffer and appends to the pending output. No
/// other coroutine runs during a call, so one coroutine may read while another writes. Records are
/// sent in the order in which OpenSSL produced them.
class engine {
public:
    /// The most that one write() encrypts: four records.
    static constexpr std::size_t largest_write = std::size_t{64} * 1024;

    explicit engine(const context& ctx);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    /// Select the side; called before the first handshake(). Return 0 or -errno. Selecting the same
    /// side again has no effect; selecting the other one returns -EINVAL.
    int begin_client(std::string&& name);
    int begin_server();
    /// Passes the socket on which the kernel may encrypt, or -1 if the transport is not a socket.
    /// Used if the context prefers kernel sending. Called before the first handshake().
    void offer_socket(int fd);
    step handshake() noexcept;
    step read(mutable_buffer to) noexcept;
    step write(const_buffer from) noexcept;
    step close() noexcept;
    step update_keys() noexcept;

    /// The buffer to receive into; a small one if there is no memory for the large one. Never
    /// empty.
    [[nodiscard]] mutable_buffer input_room() noexcept;
    /// Reports what was received into input_room(); 0 is the end of the transport.
    void received(std::size_t size) noexcept;
    /// Changes with every call of received().
    [[nodiscard]] unsigned inputs() const noexcept { return inputs_; }

    [[nodiscard]] bool has_output() const noexcept {
        return !sending_.empty() || !pending_.empty();
    }
    /// Whether the output is only a server's session tickets, which the peer does not wait for.
    /// They are sent with the next output, or before this side waits for input.
    [[nodiscard]] bool output_can_wait() const noexcept { return only_tickets_; }
    /// The next bytes to send. They stay in place until sent(), even if more output is appended.
    /// Called by the owner of `send_lock`.
    [[nodiscard]] const_buffer output() noexcept;
    void sent(std::size_t size) noexcept {
        sending_.consume(size);
        if (kernel_) {
            kernel_->sent(size);
        }
    }
    /// The record type with which output() must be sent, if the kernel encrypts it; 0 for output
    /// that is sent without a type: application data, or records that OpenSSL has encrypted.
    [[nodiscard]] unsigned char output_type() const noexcept {
        return kernel_ ? kernel_->type() : 0;
    }
    [[nodiscard]] bool kernel_sends() const noexcept { return kernel_ && kernel_->active(); }
    [[nodiscard]] std::string_view kernel_refusal() const noexcept;
    /// The error with which a write would fail now, or 0. May append an alert to the output.
    [[nodiscard]] io_result write_refusal() noexcept;

    /// A transfer begins or ends. In between, other contexts must not use the connection.
    void begin_transfer() noexcept;
    void end_transfer() noexcept { --transfers_; }
    /// A transfer has an unknown result, because its coroutine was destroyed.
    void lose_transfer() noexcept;

    [[nodiscard]] bool resumed() const noexcept;
    [[nodiscard]] std::string_view alpn() const noexcept;
    [[nodiscard]] std::string_view server_name() const noexcept;
    [[nodiscard]] std::string_view version() const noexcept;
    [[nodiscard]] std::string_view cipher() const noexcept;
    [[nodiscard]] std::string peer_subject() const;
    [[nodiscard]] tls::session session() const;
    void resume(const tls::session& s) { rare().offered = s; }
    [[nodiscard]] const std::string& last_error() const noexcept;
    [[nodiscard]] ssl_st* native_handle() const noexcept { return ssl_; }

    /// Held while bytes are received, or sent.
    transfer_lock receive_lock;
    transfer_lock send_lock;

private:
    friend struct bio_functions;

    /// State that few connections of a server need; allocated on first use.
    struct rare_state {
        std::string name;     // of the server, for a client
        tls::session offered; // to the server
        std::string last_error;
    };

    /// The receive buffer of a connection that waits for input.
    static constexpr std::size_t small_input = 256;
    /// free(3) of glibc tidies up the heap after blocks of 64 KiB and more.
    static constexpr std::size_t large_input = std::size_t{64} * 1024 - 64;
    enum class side : unsigned char { none, client, server };

    [[nodiscard]] rare_state& rare() {
        if (!rare_) {
            rare_ = std::make_unique<rare_state>();
        }
        return *rare_;
    }
    void check_context() const noexcept;
    [[nodiscard]] io_result refusal() const noexcept;
    step outcome(int result) noexcept;
    int fail(int error, std::string_view why, const char* detail = nullptr) noexcept;
    int refuse_new_keys() noexcept;
    bool append_output(const char* from, std::size_t size) noexcept;
    bool start_kernel_sending(const void* keys) noexcept;
    io_result send_pending_now() noexcept;

    std::shared_ptr<context_state> context_;
    ssl_st* ssl_ = nullptr;
    byte_queue pending_; // produced by OpenSSL, not being sent yet
    byte_queue sending_; // being sent by the transport; OpenSSL does not append to it
    std::unique_ptr<std::byte[]> large_;
    std::unique_ptr<rare_state> rare_;
    std::unique_ptr<kernel_sender> kernel_; // if the context prefers the kernel
    std::uint32_t input_begin_ = 0;
    std::uint32_t input_end_ = 0;
    unsigned inputs_ = 0;
    unsigned transfers_ = 0;                         // in flight
    const coil::detail::event_loop* user_ = nullptr; // the context of the transfers
    int failure_ = 0; // -errno of the failure that ended the connection
    side side_ = side::none;
    bool established_ = false;
    bool wants_large_ = true; // a handshake receives several kilobytes
    bool input_ended_ = false;
    bool no_memory_ = false;
    bool only_tickets_ = false; // nothing was appended to the output after the tickets
    std::array<std::byte, small_input> small_;
};

/// Marks a transfer that is in flight. If the coroutine is destroyed before over(), the number of
/// transferred bytes is unknown, and the connection has become unusable.
class transfer {
public:
    explicit transfer(engine& of) noexcept : engine_(&of) { of.begin_transfer(); }
    transfer(const transfer&) = delete;
    transfer& operator=(const transfer&) = delete;
    ~transfer() {
        if (engine_ != nullptr) [[unlikely]] {
            engine_->end_transfer();
            engine_->lose_transfer();
        }
    }
    void over() noexcept {
        engine_->end_transfer();
        engine_ = nullptr;
    }

private:
    engine* engine_;
};

} // namespace coil::tls::detail
