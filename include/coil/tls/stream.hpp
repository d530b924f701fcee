#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/net/socket.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/tls/context.hpp>
#include <coil/tls/detail/connection.hpp>
#include <coil/tls/session.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct ssl_st; // OpenSSL's SSL

namespace coil::tls {

template <byte_stream Transport>
class basic_stream;

/// TLS over a socket. In a simulated world it runs over the world's sockets.
using stream = basic_stream<net::socket>;

/// A TLS connection over a byte_stream, which it owns. It is a byte_stream itself. Move-only.
///
///     tls::stream s{co_await net::connect("example.org", 443), ctx};
///     if (int r = co_await s.handshake("example.org"); r < 0)
///         std::fprintf(stderr, "%s\n", s.last_error().c_str());
///     co_await write_all(s, request);
///     int n = co_await s.read_some(buf);     // 0: the peer has ended the connection properly
///     co_await s.shutdown();
///
/// Calls return the results of the transport, and these errors:
///
/// - -EPROTO: the protocol failed: a malformed record, an alert of the peer, no common version;
/// - -EKEYREJECTED: the certificate of the peer is not trusted, or is not valid for the name;
/// - -ECONNABORTED: truncation: the transport ended without the peer's close_notify;
/// - -ENOTCONN: there was no handshake yet;
/// - -EPIPE: a write after shutdown_write();
/// - -ENOMEM: there was no memory.
///
/// After the first three, and after -ENOMEM during a call of OpenSSL, last_error() describes the
/// failure, and every later call returns the same error. After an error of the transport the call
/// may be repeated.
///
/// Threading: one context at a time. One read and one write may be in flight together.
///
/// Cancellation: a cancelled call returns -ECANCELED, and the connection stays usable. A handshake
/// or shutdown continues when it is called again. A cancelled read has consumed nothing, and a
/// cancelled write has accepted nothing. A write that had already accepted data returns the number
/// of bytes instead of -ECANCELED, and the next call sends the rest. If a coroutine is destroyed
/// while a call transfers data, the connection is unusable: later calls return -EPROTO.
template <byte_stream Transport>
class basic_stream {
public:
    /// Sends nothing yet. Throws std::bad_alloc.
    basic_stream(Transport transport, const context& ctx)
        : c_(std::make_unique<detail::connection<Transport>>(std::move(transport), ctx)) {}

    /// Produce readable compiler errors.
    template <class... Args>
    task<io_result> send(Args&&...)
        COIL_DELETE("write_some(data), or the whole: write_all(stream, data)");
    template <class... Args>
    task<io_result> recv(Args&&...) COIL_DELETE("a tls::stream is a byte_stream: read_some(buf)");
    task<io_result> handshake() COIL_DELETE(
        "pass the name that the server's certificate must have: handshake(\"example.org\")");

    /// A client's handshake: 0. The server's certificate must be valid for `name`, a host name or a
    /// numeric address. A host name is also sent to the server (SNI). -EINVAL: an empty name,
    /// unless the context allows unverified peers; an invalid name; the context of a server.
    COIL_CORO_WRAPPER task<io_result> handshake(std::string name) {
        return detail::connect(*c_, std::move(name));
    }
    /// A server's handshake: 0. -EINVAL with the context of a client. The session tickets of
    /// TLS 1.3 are sent with the first data or close_notify, or before a read waits for the peer.
    COIL_CORO_WRAPPER task<io_result> accept() { return detail::accept(*c_); }

    /// byte_stream: bytes read; 0 after the peer's close_notify.
    COIL_CORO_WRAPPER task<io_result> read_some(mutable_buffer to COIL_LIFETIMEBOUND) {
        return detail::read(*c_, to);
    }
    /// byte_stream: bytes accepted, at most 64 KiB. They are encrypted and sent before the call
    /// returns. If sending fails, the next call returns the error.
    COIL_CORO_WRAPPER task<io_result> write_some(const_buffer from COIL_LIFETIMEBOUND) {
        return detail::write(*c_, from);
    }
    /// byte_stream: sends close_notify. Reading continues; the transport stays open.
    COIL_CORO_WRAPPER task<io_result> shutdown_write() { return detail::close_writing(*c_); }
    /// Sends close_notify and reads until the peer's close_notify, discarding data: 0. It waits for
    /// as long as the peer does not close its side: use timeout(). No read may be in flight.
    COIL_CORO_WRAPPER task<io_result> shutdown() { return detail::close(*c_); }

    /// TLS 1.3: sends a KeyUpdate, uses new keys from then on, and requests the same of the peer.
    /// OpenSSL does this by itself when a key has encrypted enough. -EOPNOTSUPP with TLS 1.2;
    /// -EAGAIN if OpenSSL cannot do it now.
    COIL_CORO_WRAPPER task<io_result> update_keys() { return detail::update_keys(*c_); }

    /// A session for resume(), or an empty one. With TLS 1.3 the server sends it after the
    /// handshake: call this after a read.
    [[nodiscard]] tls::session session() const { return c_->engine.session(); }
    /// Offers a session to the server; call it before the handshake. The handshake is a full one if
    /// the server refuses the session, or if the session was established under another name.
    void resume(const tls::session& s) { c_->engine.resume(s); }
    /// Whether the handshake resumed a session.
    [[nodiscard]] bool resumed() const noexcept { return c_->engine.resumed(); }

    /// The application protocol that was negotiated (ALPN), or an empty string.
    [[nodiscard]] std::string_view alpn() const noexcept { return c_->engine.alpn(); }
    /// The name that the client requested (SNI), or an empty string.
    [[nodiscard]] std::string_view server_name() const noexcept { return c_->engine.server_name(); }
    /// The protocol version, such as "TLSv1.3".
    [[nodiscard]] std::string_view version() const noexcept { return c_->engine.version(); }
    /// The cipher suite, such as "TLS_AES_256_GCM_SHA384".
    [[nodiscard]] std::string_view cipher() const noexcept { return c_->engine.cipher(); }
    /// The subject of the peer's certificate, such as "CN = example.org", or an empty string.
    [[nodiscard]] std::string peer_subject() const { return c_->engine.peer_subject(); }
    /// A sentence that describes the TLS failure, or an empty string.
    [[nodiscard]] const std::string& last_error() const noexcept { return c_->engine.last_error(); }

    /// Whether the kernel encrypts what this connection sends: see
    /// context::prefer_kernel_sending(). Then update_keys() returns -EOPNOTSUPP, and after the peer
    /// has requested a KeyUpdate, the next write fails with -EPROTO and ends the connection.
    [[nodiscard]] bool kernel_sends() const noexcept { return c_->engine.kernel_sends(); }
    /// After the handshake: why the kernel does not encrypt although the context prefers it, such
    /// as "the kernel has no TLS (module tls)". Otherwise an empty string.
    [[nodiscard]] std::string_view kernel_refusal() const noexcept {
        return c_->engine.kernel_refusal();
    }

    [[nodiscard]] Transport& transport() noexcept { return c_->transport; }
    /// OpenSSL's object, for calls that this class does not have. Do not read or write with it.
    [[nodiscard]] ssl_st* native_handle() const noexcept { return c_->engine.native_handle(); }

private:
    friend struct detail::connection_access;

    /// Allocated separately: coroutines refer to it, and the stream may be moved at any time.
    std::unique_ptr<detail::connection<Transport>> c_;
};

template <class Transport>
basic_stream(Transport, const context&) -> basic_stream<Transport>;

} // namespace coil::tls
