#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/send_file.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace coil {

/// Sends `count` bytes of a file, from `offset` on, to a socket: the number of bytes sent, or
/// -errno. Fewer than `count` are sent if the file ends, or if an error or a cancellation comes
/// after the first bytes: the next call, at `offset` plus the result, continues, or returns the
/// error.
///
///     for (std::uint64_t at = 0; at < size;) {
///         const int n = (co_await sendfile(socket, file, at)).value();
///         if (n == 0)
///             break;   // the file has become shorter
///         at += n;
///     }
///
/// If `count` is more than 64 KiB, the data is not copied but moved through a pipe with splice(2),
/// as sendfile(2) does internally; io_uring has an operation only for splice(2). Otherwise, and if
/// splice(2) refuses the file or the socket (EINVAL) or no pipe can be created, the data is read
/// and sent. The file's position is neither used nor changed. Returns -ESPIPE if the file is a pipe
/// or a socket, -EINVAL if the offset is beyond INT64_MAX. At most 0x7ffff000 bytes per call, as
/// with sendfile(2). Never raises SIGPIPE.
///
/// Threading: on the awaiting context; the socket may receive meanwhile, but not send.
/// Cancellation: -ECANCELED if nothing was sent yet, otherwise the number of bytes.
template <class Socket, class File>
    requires is_plain_socket<Socket> && requires(const File& f) {
        { f.native_handle() } -> std::same_as<int>;
    }
COIL_CORO_WRAPPER task<io_result> sendfile(Socket& to, const File& from COIL_LIFETIMEBOUND,
                                           std::uint64_t offset = 0,
                                           std::size_t count = detail::max_transfer) {
    return detail::send_file(to.native_handle(), from.native_handle(), offset, count);
}

/// Produces a readable compiler error.
template <byte_sink Sink, class File>
    requires(!is_plain_socket<Sink>)
task<io_result> sendfile(Sink&, const File&, std::uint64_t = 0, std::size_t = 0)
    COIL_DELETE("sendfile(socket, file) takes a net::socket or, with <coil/tls.hpp>, a "
                "tls::stream; for other streams write copy(file, stream)");

} // namespace coil
