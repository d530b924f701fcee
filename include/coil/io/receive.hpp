#pragma once

#include <coil/context/multishot.hpp>
#include <coil/core/io_result.hpp>
#include <coil/io/buffer_pool.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/buffer_source.hpp>

#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include <sys/socket.h>

// Multishot receives into the buffers of a pool: one request for many pieces of data, and no buffer
// is held while there is no data.
//
// Common to these streams and, except for the buffers, to those of io/multishot.hpp: a stream is
// constructed and awaited on one context, cannot be moved, and is awaited by one coroutine at a
// time. The first next() submits the request; if the kernel ends it, the following next() submits
// it again. If the pool has no free buffer, next() waits until one is returned (so do not hold all
// buffers while waiting). Up to 64 results may be queued, or 4 while the pool is short of buffers;
// at that limit the request is stopped until the results have been taken. Destroying a stream
// cancels its request, waits until the kernel has released its buffers, and discards queued
// results; a waiting next() returns -ECANCELED. A stream does not keep run() from returning: when
// no task is left, its request is ended, and the next run() submits it again.

namespace coil {

/// A piece of received data, or the reason why there is none. It converts to bool, `*` and `->`
/// access the buffer, and result() returns the number of bytes or the error.
class received_buffer {
public:
    received_buffer() noexcept = default;
    received_buffer(io_result result, buffer_lease lease) noexcept
        : lease_(std::move(lease)), result_(result) {}

    /// Whether there is data.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(lease_); }
    [[nodiscard]] buffer_lease* operator->() noexcept { return &lease_; }
    [[nodiscard]] buffer_lease& operator*() & noexcept { return lease_; }
    [[nodiscard]] buffer_lease&& operator*() && noexcept { return std::move(lease_); }

    /// The number of bytes, 0 at the end of the data (the peer has shut down its side), or -errno.
    [[nodiscard]] io_result result() const noexcept { return result_; }
    /// The error of result(); none if there is data, and none at the end of the data.
    [[nodiscard]] std::error_code error() const noexcept { return result_.error(); }

private:
    buffer_lease lease_;
    io_result result_;
};

/// A received message: its data, the sender's address and control data.
class received_message {
public:
    received_message() noexcept = default;
    received_message(io_result result, buffer_lease lease, const ::msghdr& layout) noexcept;

    /// Whether there is a message, which may be empty.
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(lease_); }
    [[nodiscard]] received_message* operator->() noexcept { return this; }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept COIL_LIFETIMEBOUND {
        return payload_;
    }
    /// The sender's address, truncated to the reserved space; empty if there is none.
    [[nodiscard]] std::span<std::byte> name() const noexcept COIL_LIFETIMEBOUND { return name_; }
    /// Control data, for CMSG_NXTHDR (cmsg(3)). The caller must close descriptors in it.
    [[nodiscard]] std::span<std::byte> control() const noexcept COIL_LIFETIMEBOUND {
        return control_;
    }
    /// MSG_TRUNC: the message was longer than the buffer. MSG_CTRUNC: the control data was
    /// truncated.
    [[nodiscard]] int flags() const noexcept { return flags_; }

    /// The number of bytes, or -errno.
    [[nodiscard]] io_result result() const noexcept { return result_; }
    [[nodiscard]] std::error_code error() const noexcept { return result_.error(); }

private:
    buffer_lease lease_;
    std::span<std::byte> payload_;
    std::span<std::byte> name_;
    std::span<std::byte> control_;
    int flags_ = 0;
    io_result result_;
};

namespace detail {

/// The common part of recv_stream and read_stream: data may continue in the next buffer.
class byte_source : public buffer_source {
protected:
    byte_source(buffer_pool& pool, io::descriptor fd) noexcept : buffer_source(pool, fd, true) {}
    ~byte_source() = default;

    static received_buffer received(byte_source* self, const multishot_result& r) noexcept;
};

/// A stream of messages with their addresses and control data.
class message_source : public buffer_source {
protected:
    message_source(buffer_pool& pool, io::descriptor fd, int flags, unsigned name_room,
                   unsigned control_room) noexcept
        : buffer_source(pool, fd, false), flags_(flags) {
        layout_.msg_namelen = name_room;
        layout_.msg_controllen = control_room;
    }
    ~message_source() = default;

    static received_message received(message_source* self, const multishot_result& r) noexcept;

private:
    uring::sqe group_request(unsigned group) noexcept override;
    uring::sqe own_request(std::byte* data, std::size_t size) noexcept override;
    int own_filled(std::byte* data, int result) noexcept override;

    ::msghdr layout_{};  // only the lengths of name and control data
    ::msghdr message_{}; // for a request with a buffer of its own
    ::iovec part_{};
    int flags_;
};

} // namespace detail

namespace io {

/// The stream returned by recv_multishot.
class recv_stream final : detail::byte_source {
public:
    recv_stream(descriptor fd, buffer_pool& pool, int flags) noexcept
        : byte_source(pool, fd), flags_(flags) {}
    ~recv_stream() { close(); }

    /// The next piece of data; false at the end and on errors, see received_buffer::result().
    multishot_next<recv_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<recv_stream>;

    uring::sqe group_request(unsigned group) noexcept override;
    uring::sqe own_request(std::byte* data, std::size_t size) noexcept override;

    int flags_;
};

/// The stream returned by read_multishot.
class read_stream final : detail::byte_source {
public:
    read_stream(descriptor fd, buffer_pool& pool) noexcept : byte_source(pool, fd) {}
    ~read_stream() { close(); }

    /// The next piece of data; false at the end and on errors, see received_buffer::result().
    multishot_next<read_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<read_stream>;

    uring::sqe group_request(unsigned group) noexcept override;
    uring::sqe own_request(std::byte* data, std::size_t size) noexcept override;
};

/// The stream returned by recvmsg_multishot.
class recvmsg_stream final : detail::message_source {
public:
    recvmsg_stream(descriptor fd, buffer_pool& pool, int flags, unsigned name_room,
                   unsigned control_room) noexcept
        : message_source(pool, fd, flags, name_room, control_room) {}
    ~recvmsg_stream() { close(); }

    /// The next message; false on errors, see received_message::result().
    multishot_next<recvmsg_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<recvmsg_stream>;
};

/// recv(2), repeatedly (IORING_OP_RECV multishot, Linux 6.0; before, one request per piece). `pool`
/// may be destroyed once the call has returned. On datagram sockets each piece is a datagram,
/// truncated if the buffer is shorter; an empty one looks like the end of the data: use
/// recvmsg_multishot there. (The type of a direct descriptor is unknown, so its streams do not
/// share an incremental pool.)
[[nodiscard]] inline recv_stream recv_multishot(descriptor fd, buffer_pool& pool,
                                                int flags = 0) noexcept {
    return {fd, pool, flags};
}

/// read(2), repeatedly, from pollable files: pipes, sockets, terminals, eventfd(2)
/// (IORING_OP_READ_MULTISHOT, Linux 6.7; before, one request per piece). Regular files fail with
/// -EBADFD.
[[nodiscard]] inline read_stream read_multishot(descriptor fd, buffer_pool& pool) noexcept {
    return {fd, pool};
}

/// recvmsg(2), repeatedly (IORING_OP_RECVMSG multishot, Linux 6.0; before, one request per
/// message). Each buffer holds a 16-byte kernel header, `name_room` bytes for the sender's address,
/// `control_room` bytes for control data, and the message. control() is aligned for cmsg(3) if
/// `name_room` is a multiple of 8. The end of a stream socket's data is an empty message.
[[nodiscard]] inline recvmsg_stream
recvmsg_multishot(descriptor fd, buffer_pool& pool, int flags = 0,
                  unsigned name_room = sizeof(::sockaddr_storage),
                  unsigned control_room = 0) noexcept {
    return {fd, pool, flags, name_room, control_room};
}

} // namespace io

} // namespace coil
