#pragma once

#include <coil/base/owned.hpp>
#include <coil/context/multishot.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/io/receive.hpp>
#include <coil/net/datagram_info.hpp>
#include <coil/net/endpoint.hpp>
#include <coil/net/socket.hpp>

#include <cstddef>
#include <span>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>

namespace coil::net {

/// A received datagram in a buffer of a pool, or the reason why there is none.
class datagram {
public:
    datagram() noexcept = default;
    explicit datagram(received_message message) noexcept;

    /// Whether there is a datagram, which may be empty.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(message_); }
    /// The number of bytes, or -errno.
    [[nodiscard]] io_result result() const noexcept { return message_.result(); }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept COIL_LIFETIMEBOUND {
        return message_.bytes();
    }
    [[nodiscard]] const datagram_info& info() const noexcept { return info_; }
    [[nodiscard]] const endpoint& peer() const noexcept { return info_.peer; }
    /// Whether the datagram was longer than the buffer.
    [[nodiscard]] bool truncated() const noexcept { return (message_.flags() & MSG_TRUNC) != 0; }

private:
    received_message message_;
    datagram_info info_;
};

namespace detail {

/// The space for the control data of a datagram: segment size, ECN, timestamp.
inline constexpr std::size_t datagram_control = 128;

} // namespace detail

/// The stream returned by datagrams().
class datagram_stream final : coil::detail::message_source {
public:
    datagram_stream(const socket& s, buffer_pool& pool) noexcept
        : message_source(pool, s.native_handle(), 0, sizeof(::sockaddr_storage),
                         detail::datagram_control) {}
    ~datagram_stream() { close(); }

    /// The next datagram; false on errors, see datagram::result().
    multishot_next<datagram_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<datagram_stream>;

    static datagram received(datagram_stream* self,
                             const coil::detail::multishot_result& r) noexcept {
        return datagram(message_source::received(self, r));
    }
};

/// The datagrams that a socket receives, in buffers of a pool, on one multishot recvmsg.
///
///     buffer_pool pool({.buffers = 256, .buffer_size = 2048, .incremental = false});
///     auto incoming = net::datagrams(socket, pool);
///     while (net::datagram d = co_await incoming.next())
///         use(d.bytes(), d.peer());
///
/// Of each buffer, 272 bytes are for a header, the address and the control data. The socket must
/// outlive the stream; for the rest see io/receive.hpp.
[[nodiscard]] inline datagram_stream datagrams(const socket& s, buffer_pool& pool) noexcept {
    return {s, pool};
}

/// sendmsg(2): sends one datagram, or several of segment_size bytes each. Returns the number of
/// bytes, or -errno. `data` must outlive the await.
///
///     co_await net::send_datagram(socket, packets, {.peer = peer, .segment_size = 1200});
///
/// Threading and cancellation: as for socket::send_to().
[[nodiscard]] task<io_result> send_datagram(const socket& s, const_buffer data COIL_LIFETIMEBOUND,
                                            datagram_info info);

/// Buffers for many datagrams, which receive_batch() fills and send_batch() sends, with one system
/// call each (recvmmsg(2), sendmmsg(2)): the fastest way to transfer many small datagrams.
///
///     net::datagram_batch batch(64, 2048);
///     while (co_await net::receive_batch(socket, batch) > 0)
///         co_await net::send_batch(socket, batch);          // an echo
///
/// Threading: used by one call at a time.
class datagram_batch {
public:
    /// `capacity` pieces, 1 to 1024, of up to `piece` bytes each, 1 to 65535; other numbers are
    /// clamped. A piece is one datagram, or several datagrams of one peer: see
    /// datagram_info::segment_size. With datagram_options::segments, a piece may need 65535 bytes;
    /// a few pieces are then enough. Throws std::bad_alloc.
    explicit datagram_batch(std::size_t capacity = 64, std::size_t piece = 2048);
    datagram_batch(datagram_batch&& other) noexcept;
    datagram_batch& operator=(datagram_batch&& other) noexcept;
    ~datagram_batch();

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// The number of pieces that it contains.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    /// The data of piece `i`, which may be changed in place. `i` must be less than size().
    [[nodiscard]] std::span<std::byte> bytes(std::size_t i) const noexcept COIL_LIFETIMEBOUND;
    /// The information reported with piece `i`, or passed to add(). `i` must be less than size().
    [[nodiscard]] const datagram_info& info(std::size_t i) const noexcept COIL_LIFETIMEBOUND;
    /// Whether piece `i` was longer than its buffer. `i` must be less than size().
    [[nodiscard]] bool truncated(std::size_t i) const noexcept;

    void clear() noexcept { size_ = 0; }
    /// Adds a copy of `data`. Returns false if the batch is full or the data is too long.
    bool add(const_buffer data, const datagram_info& info) noexcept;

private:
    friend task<io_result> receive_batch(const socket& s, datagram_batch& into);
    friend task<io_result> send_batch(const socket& s, datagram_batch& batch);

    struct slot;

    void prepare_receive() noexcept;
    void prepare_send(int family) noexcept;
    void received(std::size_t count) noexcept;

    std::size_t capacity_;
    std::size_t piece_;
    std::size_t size_ = 0;
    coil::detail::owned<std::byte[]> data_;
    coil::detail::owned<slot[]> slots_;
    coil::detail::owned<::mmsghdr[]> messages_;
};

/// Waits until at least one datagram has arrived, and receives all that are queued, up to
/// capacity(). Returns the number of pieces, at least 1, or -errno; the batch is empty after an
/// error.
///
/// Threading: on the awaiting context. Cancellation: -ECANCELED; nothing is lost. In a simulated
/// world it receives one at a time.
[[nodiscard]] task<io_result> receive_batch(const socket& s, datagram_batch& into);

/// Sends all pieces, each to its peer, with its segment size and ECN bits, and waits while the
/// socket's buffer is full. Returns the number of pieces sent, which is less than size() if the
/// next one could not be sent, or -errno if the first one could not be sent. Cancellation:
/// -ECANCELED, even after some were sent. The batch remains unchanged.
[[nodiscard]] task<io_result> send_batch(const socket& s, datagram_batch& batch);

} // namespace coil::net
