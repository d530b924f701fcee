#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/sendfile.hpp>
#include <coil/tls/detail/connection.hpp>
#include <coil/tls/detail/send_file.hpp>
#include <coil/tls/stream.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace coil {

/// The sendfile() of a socket for a TLS connection, with the same results: the number of bytes
/// sent, or -errno. If the kernel encrypts (tls::stream::kernel_sends()), the data is not copied to
/// user space; otherwise it is read, encrypted and sent.
///
/// Threading: as for the stream; the call counts as a write. Cancellation and errors in the middle:
/// the number of bytes sent, or -ECANCELED or the error if there are none. No byte is sent that is
/// not counted, so the connection stays usable: a call with a larger offset sends the rest, or
/// other data may follow. After an error the next call returns it. If the coroutine is destroyed in
/// the middle, later calls return -EPROTO. Errors: also those of tls::stream::write_some().
template <byte_stream Transport, class File>
    requires requires(const File& f) {
        { f.native_handle() } -> std::same_as<int>;
    }
COIL_CORO_WRAPPER task<io_result>
sendfile(tls::basic_stream<Transport>& to, const File& from COIL_LIFETIMEBOUND,
         std::uint64_t offset = 0, std::size_t count = detail::max_transfer) {
    return tls::detail::send_file(tls::detail::connection_access::of(to), from.native_handle(),
                                  offset, count);
}

} // namespace coil
