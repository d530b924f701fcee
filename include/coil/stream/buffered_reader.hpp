#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/late_task.hpp>
#include <coil/stream/detail/read_buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coil {

/// Reads in large pieces and hands out small ones: up to a delimiter, exact sizes, lines.
///
///     buffered_reader r{socket};
///     auto lines = r.lines();
///     while (auto line = co_await lines.next())   // std::optional<std::string_view>
///         use(*line);
///
/// Made of a named stream it refers to it; made of a temporary (std::move(socket)) it owns it. It
/// is a byte_source itself. Views are of its buffer, without a copy, and valid until its next call.
///
/// Threading: on one context at a time; one call at a time.
/// Errors: what gives a view throws std::system_error with the stream's error; the others give
/// -errno. Cancellation: std::errc::operation_canceled or -ECANCELED. A failed or cancelled
/// read_until() has consumed nothing: the bytes are there for the next call.
template <class Source>
    requires byte_source<Source>
class buffered_reader {
public:
    static constexpr std::size_t default_capacity = 16 * 1024;
    /// What a line may be long, unless the caller says otherwise.
    static constexpr std::size_t default_max = 64 * 1024;

    /// `capacity`: bytes of the buffer at first. It grows to what read_until() needs.
    explicit buffered_reader(Source&& from, std::size_t capacity = default_capacity)
        : from_(static_cast<Source&&>(from)), buffer_(std::max<std::size_t>(capacity, 1)) {}

    /// The stream below. What is in the buffer was taken from it already.
    [[nodiscard]] std::remove_reference_t<Source>& stream() noexcept { return from_; }
    /// What was read and not yet handed out.
    [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.unread(); }

    class until_awaitable;
    /// The text up to the delimiter, which is consumed and not part of it. At the end of the
    /// stream: what is left, once, if there is anything (delimited() then is false); then nothing.
    /// When there is no delimiter within `max` bytes: std::system_error with
    /// std::errc::message_size.
    [[nodiscard("did you forget to co_await?")]] until_awaitable
    read_until(char delimiter, std::size_t max = default_max) noexcept {
        return until_awaitable(*this, delimiter, max);
    }
    /// Whether the last read_until() has found its delimiter; false: the stream ended before.
    [[nodiscard]] bool delimited() const noexcept { return delimited_; }

    /// Fills the buffer: its size; -ENODATA when the stream ends before, or the error, however much
    /// came until then. At most 0x7ffff000 bytes.
    task<io_result> read_exact(mutable_buffer buf) {
        buf = {buf.data(), detail::transfer_size(buf.size())};
        std::size_t done = buffer_.take(buf);
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

    /// What a byte_source does: first what is in the buffer.
    task<io_result> read_some(mutable_buffer buf) {
        if (const std::size_t taken = buffer_.take(buf); taken > 0 || buf.size() == 0) {
            co_return io_result(static_cast<int>(taken));
        }
        co_return io_result(co_await from_.read_some(buf));
    }

    class line_range;
    /// The lines of the stream as an asynchronous range: without "\n" or "\r\n"; the last one may
    /// lack it. A line of more than `max` bytes throws as in read_until(). The reader must outlive
    /// the range.
    [[nodiscard]] line_range lines(std::size_t max = default_max) noexcept {
        return line_range(*this, max);
    }

private:
    using view = std::optional<std::string_view>;

    /// Reads once into the buffer: bytes, 0 at the end, or −errno.
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

    task<view> read_until_slowly(char delimiter, std::size_t max) {
        view found;
        do {
            buffer_.grow_for(max);
            const int n = (co_await fill()).value();
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

/// What buffered_reader::read_until() gives. It does not suspend when the delimiter is in the
/// buffer.
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
            return is_found_ = what_.reader_->find(what_.delimiter_, what_.max_, found_);
        }
        template <class P>
        auto await_suspend(std::coroutine_handle<P> waiter) {
            slow_.start(what_.reader_->read_until_slowly(what_.delimiter_, what_.max_));
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

/// What buffered_reader::lines() gives.
template <class Source>
    requires byte_source<Source>
class buffered_reader<Source>::line_range {
public:
    line_range(buffered_reader& of, std::size_t max) noexcept : reader_(&of), max_(max) {}

    /// The next line, or nothing at the end.
    [[nodiscard("did you forget to co_await?")]] until_awaitable next() noexcept {
        return until_awaitable(*reader_, '\n', max_, true);
    }

private:
    buffered_reader* reader_;
    std::size_t max_;
};

} // namespace coil
