#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/io/file.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/send_file.hpp>
#include <coil/tls/detail/connection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace coil::tls::detail {

/// sendfile() on a connection whose kernel encrypts: bytes, or -errno.
template <class Transport>
task<io_result> send_file_by_kernel(connection<Transport>& c, int file, std::uint64_t offset,
                                    std::size_t count) {
    // Output is older than the file.
    if (const int sent = co_await flush(c, after_flush::keep_locked); sent < 0) {
        co_return io_result(sent);
    }
    int result = 0;
    {
        const transfer_lock::guard held(c.engine.send_lock);
        result = c.engine.write_refusal();
        if (result == 0) {
            transfer mark(c.engine);
            result =
                co_await coil::detail::send_file(c.transport.native_handle(), file, offset, count);
            mark.over();
        }
    }
    if (c.engine.has_output()) {
        co_await flush(c); // an alert, of this call or of a read meanwhile
    }
    co_return io_result(result);
}

/// sendfile() for a TLS connection: bytes, or -errno.
template <class Transport>
task<io_result> send_file(connection<Transport>& c, int file, std::uint64_t offset,
                          std::size_t count) {
    if (const io_result refused = c.engine.write_refusal(); refused < 0) {
        if (c.engine.has_output()) {
            co_await flush(c); // an alert
        }
        co_return refused;
    }
    if (const int error = coil::detail::check_offset(file, offset); error < 0) {
        co_return io_result(error);
    }
    if constexpr (is_plain_socket<Transport>) {
        if (c.engine.kernel_sends()) {
            co_return co_await send_file_by_kernel(c, file, offset, count);
        }
    }
    const std::size_t whole = coil::detail::transfer_size(count);
    const std::size_t piece = std::min(whole, engine::largest_write);
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(piece);
    std::size_t sent = 0;
    while (sent < whole) {
        int n =
            co_await io::read(file, {memory.get(), std::min(whole - sent, piece)}, offset + sent);
        if (n > 0) {
            n = co_await write(c, const_buffer(memory.get(), static_cast<std::size_t>(n)));
        }
        if (n <= 0) {
            co_return io_result(sent > 0 ? static_cast<int>(sent) : n);
        }
        sent += static_cast<std::size_t>(n);
    }
    co_return io_result(static_cast<int>(sent));
}

} // namespace coil::tls::detail
