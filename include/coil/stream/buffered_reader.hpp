#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/late_task.hpp>
#include <coil/stream/detail/read_buffer.hpp>

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// Reads a stream in large blocks and returns delimited text, lines, or exact sizes from its
/// buffer.
///
///     buffered_reader r{socket};
///     auto lines = r.lines();
///     while (auto line = co_await lines.next())   // std::optional<std::string_view>
///         use(*line);
///
/// Constructed from an lvalue, the reader refers to the stream; from an rvalue (std::move(socket)),
/// it owns it. The reader is a byte_source itself. Returned views refer to its buffer and are valid
/// until the next call.
///
/// Threading: on one context at a time; one call at a time. Errors: calls that give a view throw
/// std::system_error with the stream's error; the others give -errno. Cancellation:
/// std::errc::operation_canceled or -ECANCELED. A failed or cancelled read_until() consumes
/// nothing: the next call reads the same bytes.
template <class Source>
    requires byte_source<Source>
class buffered_reader {
public:
    static constexpr std::size_t default_capacity = 16 * 1024;
    /// The default limit for the length of a line.
    static constexpr std::size_t default_max = 64 * 1024;

    /// `capacity`: the initial size of the buffer. It grows as read_until() needs.
    explicit buffered_reader(Source&& from, std::size_t capacity = default_capacity)
        : from_(static_cast<Source&&>(from)), buffer_(detail::max<std::size_t>(capacity, 1)) {}

    /// The underlying stream. Bytes in the buffer were already read from it.
    [[nodiscard]] std::remove_reference_t<Source>& stream() noexcept { return from_; }
    /// The bytes in the buffer: read from the stream and not yet returned.
    [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.unread(); }

    class until_awaitable;
    /// Gives the text up to the delimiter and consumes both; the view does not include the
    /// delimiter. At the end of the stream it gives the remaining bytes, if any (delimited() is
    /// then false), and nullopt afterwards. Without a delimiter in `max` bytes it throws
    /// std::system_error with std::errc::message_size.
    [[nodiscard("did you forget to co_await?")]] until_awaitable
    read_until(char delimiter, std::size_t max = default_max) noexcept {
        return until_awaitable(*this, delimiter, max);
    }
    /// Whether the last read_until() found its delimiter; false if the stream ended first.
    [[nodiscard]] bool delimited() const noexcept { return delimited_; }

    /// Reads until `buf` is full and gives its size; -ENODATA if the stream ends first. On an error
    /// it gives -errno even if some bytes were read. At most 0x7ffff000 bytes.
    task<io_result> read_exact(mutable_buffer buf) {
        buf = {buf.data(), detail::transfer_size(buf.size())};
        std::size_t done = buffer_.take(buf);
        if (done == buf.size()) {
            co_await detail::immediate_await();
        }
        while (done < buf.size()) {
            const mutable_buffer rest = buf.drop(done);
            if (rest.size() >= buffer_.capacity()) {
                const int n = io_result(co_await from_.read_some(rest));
                if (n <= 0) {
                    co_return io_result(n == 0 ? -ENODATA : n);
                }
                done += static_cast<std::size_t>(n);
                continue;
            }
            const int n = co_await fill();
            if (n <= 0) {
                co_return io_result(n == 0 ? -ENODATA : n);
            }
            done += buffer_.take(rest);
        }
        co_return io_result(static_cast<int>(done));
    }

    /// byte_source: gives bytes from the buffer first.
    task<io_result> read_some(mutable_buffer buf) {
        if (const std::size_t taken = buffer_.take(buf); taken > 0 || buf.size() == 0) {
            co_await detail::immediate_await();
            co_return io_result(static_cast<int>(taken));
        }
        co_return io_result(co_await from_.read_some(buf));
    }

    class line_range;
    /// The lines of the stream as an asynchronous range, without their "\n" or "\r\n". A last line
    /// without "\n" is returned unchanged; delimited() is then false. A line of more than `max`
    /// bytes, including a '\r' but not the "\n", throws as read_until() does. The reader must
    /// outlive the range.
    [[nodiscard]] line_range lines(std::size_t max = default_max) noexcept {
        return line_range(*this, max);
    }

private:
    using view = std::optional<std::string_view>;

    /// Reads once into the buffer: bytes, 0 at the end, or -errno.
    task<io_result> fill() {
        const mutable_buffer room = buffer_.room();
        const int n = io_result(co_await from_.read_some(room));
        if (n > 0) {
            buffer_.filled(static_cast<std::size_t>(n));
        }
        co_return io_result(n);
    }

    [[nodiscard]] bool find(char delimiter, std::size_t max, view& found) {
        found = buffer_.take_until(delimiter, max);
        delimited_ = found.has_value();
        return delimited_;
    }

    /// Lets other coroutines run first.
    static task<view> found_later(view found) {
        co_await detail::yield_awaiter();
        co_return found;
    }

    task<view> read_until_slowly(char delimiter, std::size_t max) {
        view found;
        do {
            buffer_.grow_for(max);
            const int n = io_result(co_await fill()).value();
            if (n == 0) {
                co_return buffer_.take_rest();
            }
        } while (!find(delimiter, max, found));
        co_return found;
    }

    Source from_;
    detail::read_buffer buffer_;
    bool delimited_ = false;
};

template <class Source>
buffered_reader(Source&&) -> buffered_reader<Source>;
template <class Source>
buffered_reader(Source&&, std::size_t) -> buffered_reader<Source>;

/// The awaitable of buffered_reader::read_until(). If the delimiter is in the buffer, it does not
/// suspend, up to a number of times in a row.
template <class Source>
    requires byte_source<Source>
class [[nodiscard("did you forget to co_await?")]] buffered_reader<Source>::until_awaitable {
public:
    until_awaitable(buffered_reader& of, char delimiter, std::size_t max,
                    bool are_lines = false) noexcept
        : reader_(&of), max_(max), delimiter_(delimiter), are_lines_(are_lines) {}

    class awaiter {
    public:
        explicit awaiter(const until_awaitable& what) noexcept : what_(what) {}

        [[nodiscard]] bool await_ready() {
            is_found_ = what_.reader_->find(what_.delimiter_, what_.max_, found_);
            return is_found_ && detail::immediate_await().await_ready();
        }
        template <class P>
        auto await_suspend(std::coroutine_handle<P> waiter) {
            slow_.start(is_found_ ? found_later(found_)
                                  : what_.reader_->read_until_slowly(what_.delimiter_, what_.max_));
            is_found_ = false;
            return slow_.await_suspend(waiter);
        }
        view await_resume() {
            if (!is_found_) {
                found_ = slow_.await_resume();
            }
            if (what_.are_lines_ && found_ && found_->ends_with('\r') &&
                what_.reader_->delimited()) {
                found_->remove_suffix(1);
            }
            return found_;
        }

    private:
        until_awaitable what_;
        bool is_found_ = false;
        view found_;
        detail::late_task<view> slow_;
    };
    [[nodiscard]] awaiter operator co_await() const noexcept { return awaiter(*this); }

private:
    buffered_reader* reader_;
    std::size_t max_;
    char delimiter_;
    bool are_lines_;
};

/// The range of buffered_reader::lines().
template <class Source>
    requires byte_source<Source>
class buffered_reader<Source>::line_range {
public:
    line_range(buffered_reader& of, std::size_t max) noexcept : reader_(&of), max_(max) {}

    /// The next line; nullopt at the end.
    [[nodiscard("did you forget to co_await?")]] until_awaitable next() noexcept {
        return until_awaitable(*reader_, '\n', max_, true);
    }

private:
    buffered_reader* reader_;
    std::size_t max_;
};

} // namespace coil
