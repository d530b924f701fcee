#include "piece_sizes.hpp"

#include <coil/base/minmax.hpp>
#include <coil/context/detail/perform.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/this_task.hpp>
#include <coil/io/file.hpp>
#include <coil/io/owned_descriptor.hpp>
#include <coil/io/pipe.hpp>
#include <coil/io/socket.hpp>
#include <coil/stream/detail/send_file.hpp>
#include <coil/uring/perform.hpp>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace coil::detail {

namespace {

/// Sends a part of a file. The pipe never holds bytes that are counted as sent, so what it still
/// holds at the end is read again by the next call.
class file_sender {
public:
    file_sender(int to, int from, std::uint64_t offset, std::size_t count) noexcept
        : to_(to), from_(from), offset_(offset), rest_(transfer_size(count)) {}

    /// Returns -EINVAL if no pipe can be created, or if splice(2) refuses the file or the socket.
    /// copy() then sends the bytes that are not counted as sent.
    task<io_result> splice() {
        int fds[2];
        if (const int error = co_await io::pipe2(fds, O_CLOEXEC); error < 0) {
            co_return io_result(error == -ECANCELED ? error : -EINVAL);
        }
        const io::owned_descriptor out(fds[0]);
        const io::owned_descriptor in(fds[1]);
        ::fcntl(in.native_handle(), F_SETPIPE_SZ, piece_size); // the default size works as well
        while (rest_ > 0) {
            auto at = static_cast<::off64_t>(offset_ + sent_);
            const int n = co_await io::splice(from_, &at, in.native_handle(), nullptr,
                                              coil::detail::min(rest_, piece_size));
            if (n <= 0) {
                co_return io_result(n);
            }
            if (const int error = co_await empty(out.native_handle(), static_cast<std::size_t>(n));
                error < 0) {
                co_return io_result(error);
            }
        }
        co_return io_result(0);
    }

    task<io_result> copy() {
        const auto memory =
            std::make_unique_for_overwrite<std::byte[]>(coil::detail::min(rest_, buffer_size));
        while (rest_ > 0) {
            const mutable_buffer buffer(memory.get(), coil::detail::min(rest_, buffer_size));
            const int n = co_await io::read(from_, buffer, offset_ + sent_);
            if (n <= 0) {
                co_return io_result(n);
            }
            if (const int error = co_await send({memory.get(), n}); error < 0) {
                co_return io_result(error);
            }
        }
        co_return io_result(0);
    }

    /// The number of bytes sent, or the error if there are none.
    [[nodiscard]] io_result result(int error) const noexcept {
        return io_result(sent_ > 0 ? static_cast<int>(sent_) : error);
    }

private:
    task<io_result> empty(int pipe, std::size_t size) {
        while (size > 0) {
            const int n = co_await io::splice(pipe, nullptr, to_, nullptr, size);
            if (n > 0) {
                count(n);
                size -= static_cast<std::size_t>(n);
            } else if (n != -EAGAIN) {
                co_return io_result(n == 0 ? -EIO : n);
            } else if (const int error = co_await io::poll(to_, POLLOUT); error < 0) {
                co_return io_result(error);
            }
        }
        co_return io_result(0);
    }

    task<io_result> send(const_buffer data) {
        while (data.size() > 0) {
            const int n = co_await io::send(to_, data);
            if (n > 0) {
                count(n);
                data = data.drop(static_cast<std::size_t>(n));
            } else if (n != -EAGAIN) {
                co_return io_result(n == 0 ? -EIO : n);
            } else if (const int error = co_await io::poll(to_, POLLOUT); error < 0) {
                co_return io_result(error);
            }
        }
        co_return io_result(0);
    }

    void count(int bytes) noexcept {
        sent_ += static_cast<std::size_t>(bytes);
        rest_ -= static_cast<std::size_t>(bytes);
    }

    int to_;
    int from_;
    std::uint64_t offset_;
    std::size_t rest_;
    std::size_t sent_ = 0;
};

} // namespace

/// Refuses pipes and sockets (-ESPIPE), whose bytes could not be read again if sending them fails.
/// Offsets above INT64_MAX (-EINVAL) are negative for the kernel, to which -1 means the file's
/// position.
int check_offset(int file, std::uint64_t offset) noexcept {
    if (offset > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        return -EINVAL;
    }
    std::int64_t position = 0;
    return perform(uring::prep::lseek(file, 0, SEEK_CUR, &position));
}

task<io_result> send_file(int socket, int file, std::uint64_t offset, std::size_t count) {
    if (const int error = check_offset(file, offset); error < 0) {
        co_return io_result(error);
    }
    file_sender sender(socket, file, offset, count);
    int error = -EINVAL;
    if (count > buffer_size) {
        error = co_await sender.splice();
    }
    if (error == -EINVAL) {
        error = co_await sender.copy();
    }
    if (error == -EINTR && (co_await this_task::stop_token()).stop_requested()) {
        error = -ECANCELED; // splice(2) was interrupted to cancel it
    }
    co_return sender.result(error);
}

} // namespace coil::detail
