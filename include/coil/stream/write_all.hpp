#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>

#include <cerrno>
#include <concepts>
#include <cstddef>

namespace coil {

/// Writes the whole buffer to a sink and returns its size. On an error it returns -errno even if
/// some bytes were written; -EIO if the sink accepts nothing. At most 0x7ffff000 bytes, as with
/// write(2).
template <byte_sink Sink>
task<io_result> write_all(Sink& to, const_buffer buf COIL_LIFETIMEBOUND) {
    buf = {buf.data(), detail::transfer_size(buf.size())};
    std::size_t written = 0;
    while (written < buf.size()) {
        const int n = io_result(co_await to.write_some(buf.drop(written)));
        if (n <= 0) {
            co_return io_result(n == 0 ? -EIO : n);
        }
        written += static_cast<std::size_t>(n);
    }
    co_return io_result(static_cast<int>(written));
}
/// Produces a readable compiler error.
template <byte_sink Sink, detail::bare_pointer Data, std::integral Size>
task<io_result> write_all(Sink&, Data&& data, Size n)
    COIL_DELETE("pass the length as a part of the buffer: {data, n}");
template <class Data, byte_sink Sink>
    requires(!byte_sink<Data>)
task<io_result> write_all(const Data&, Sink&)
    COIL_DELETE("the sink comes first: write_all(sink, data)");

} // namespace coil
