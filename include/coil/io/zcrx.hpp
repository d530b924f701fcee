#pragma once

#include <coil/base/exchange.hpp>
#include <coil/context/detail/backend_factory.hpp>
#include <coil/context/multishot.hpp>
#include <coil/io/descriptor.hpp>
#include <coil/io/detail/zcrx_source.hpp>

#include <cstddef>
#include <string>

// Zero-copy receive (IORING_OP_RECV_ZC, Linux 6.15). A hardware receive queue of a network device
// places the payloads of TCP connections in memory of the process; the kernel copies nothing.
//
// What it needs: a driver that supports it, CAP_NET_ADMIN, the separation of headers and payloads
// (`ethtool -G eth0 tcp-data-split on`), and flows that are steered to the queue (`ethtool -N`).
// Connections whose packets arrive elsewhere work as well, but their data is copied. No software
// device supports it, neither loopback nor veth.

namespace coil {

namespace detail {
class zcrx_state; // NOLINT(*-virtual-class-destructor): it is final
} // namespace detail

/// Options of a zcrx_queue.
struct zcrx_options {
    /// The network interface: "eth0".
    std::string interface = {};
    /// The number of its hardware queue, which receives for this zcrx_queue alone.
    unsigned queue = 0;
    /// The memory for received data, rounded up to whole pages. It is locked (RLIMIT_MEMLOCK). If
    /// all of it is in use, the device drops packets, which TCP sends again.
    std::size_t area_size = std::size_t{64} << 20;
    /// The pieces of data that the kernel can report between two turns of the context. If there are
    /// more, the requests are made again.
    unsigned completions = 4096;
    /// A backend that replaces Linux: for tests.
    detail::backend_factory make_backend = {};
};

/// A hardware receive queue for zero-copy receives, and its memory.
///
///     coil::zcrx_queue queue{{.interface = "eth0", .queue = 3}};
///     auto incoming = io::recv_zc_multishot(fd, queue);
///     while (auto piece = co_await incoming.next())
///         use(piece->bytes());
///
/// The device uses the queue until the object and all its streams have been destroyed. Leases may
/// live longer: they keep the memory. The queue belongs to the context on which it was constructed,
/// and has a ring of its own, with 32-byte completions. It is closed when the context's ring is
/// closed: by the context's destructor, or by a run() on another thread. Its streams then return
/// -EBADF.
///
/// Threading: the thread of the context, or any thread while the context does not run.
class zcrx_queue {
public:
    /// Throws std::system_error, whose message names the cause and the remedy (ENODEV: no such
    /// interface; EOPNOTSUPP: the device, or the backend, does not support it; EPERM:
    /// CAP_NET_ADMIN; EINVAL: the kernel is too old, or headers and payloads are not separated;
    /// ENOMEM). Use recv_multishot() or recv() then.
    explicit zcrx_queue(const zcrx_options& options);
    zcrx_queue(zcrx_queue&& other) noexcept
        : state_(coil::detail::exchange(other.state_, nullptr)) {}
    zcrx_queue& operator=(zcrx_queue&& other) noexcept {
        coil::detail::swap_values(state_, other.state_);
        return *this;
    }
    ~zcrx_queue();

    /// The size of the memory for received data in bytes.
    [[nodiscard]] std::size_t area_size() const noexcept;
    /// The number of pieces of data that are in leases or wait to be taken by next().
    [[nodiscard]] std::size_t pieces_in_use() const noexcept;

private:
    friend class detail::zcrx_source;

    detail::zcrx_state* state_;
};

namespace io {

/// The stream returned by recv_zc_multishot.
class recv_zc_stream final : detail::zcrx_source {
public:
    recv_zc_stream(descriptor fd, zcrx_queue& queue) noexcept : zcrx_source(queue, fd) {}
    ~recv_zc_stream() { close(); }

    /// The next piece of data; false at the end and on errors, see received_buffer::result().
    multishot_next<recv_zc_stream> next() noexcept { return multishot_next(*this); }

private:
    friend class multishot_next<recv_zc_stream>;
};

/// recv(2) from a TCP socket, repeatedly, without a copy (IORING_OP_RECV_ZC, Linux 6.15): pieces of
/// at most a page in the memory of `queue`. What io/receive.hpp says about streams holds here as
/// well. If many pieces have not been taken, the request is stopped until they have. The socket
/// must not be a direct descriptor (-EBADF); one that is not TCP fails with -EPROTONOSUPPORT.
[[nodiscard]] inline recv_zc_stream recv_zc_multishot(descriptor fd, zcrx_queue& queue) noexcept {
    return {fd, queue};
}

} // namespace io

} // namespace coil
