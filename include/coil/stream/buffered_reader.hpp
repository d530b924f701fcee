#pragma once

#include <coil/base/minmax.hpp>
#include <coil/context/detail/yield_awaiter.hpp>
#include <coil/core/awaitable.hpp>
#include <coil/core/buffer.hpp>
#include <coil/core/config.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/byte_stream.hpp>
#include <coil/stream/detail/late_task.hpp>
#include <coil/stream/detail/one_call.hpp>
#include <coil/stream/detail/read_buffer.hpp>

#include <cerrno>
#include <concepts>
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
/// Threading: on one context at a time; one call at a time. Errors: calls that return a view throw
/// std::system_error with the stream's error; the others return -errno. Cancellation:
/// std::errc::operation_canceled or -ECANCELED. A failed or cancelled read_until() consumes
/// nothing: the next call reads the same bytes.
template <class Source>
class buffered_reader {
    static constexpr bool has_source =
        byte_source<Source>; // a variable: otherwise the compiler also lists the constraints
    static_assert(has_source,
                  "a buffered_reader reads a byte_source, such as a net::socket, an fs::file or a "
                  "pipe_end");

public:
    static constexpr std::size_t default_capacity = 16 * 1024;
    /// The default limit for the length of a line.
    static constexpr std::size_t default_max = 64 * 1024;

    buffered_reader() COIL_DELETE_COPY("pass the stream to read from: buffered_reader r{peer}");
    /// `capacity`: the initial size of the buffer. It grows as needed by read_until().
    explicit buffered_reader(Source&& from, std::size_t capacity = default_capacity)
        : from_(static_cast<Source&&>(from)), buffer_(detail::max<std::size_t>(capacity, 1)) {}

    /// The underlying stream. Bytes in the buffer were already read from it.
    [[nodiscard]] std::remove_reference_t<Source>& stream() noexcept { return from_; }
    /// The bytes in the buffer: read from the stream and not yet returned.
    [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.unread(); }

    template <bool of_line>
    class basic_until_awaitable;
    using until_awaitable = basic_until_awaitable<false>;
    /// Returns the text up to the delimiter and consumes both; the view does not include the
    /// delimiter. At the end of the stream it returns the remaining bytes, if any (delimited() is
    /// then false), and nullopt afterwards. If the text before the delimiter is longer than `max`
    /// bytes, it throws std::system_error with std::errc::message_size.
    [[nodiscard("did you forget to co_await?")]] until_awaitable
    read_until(char delimiter, std::size_t max = default_max) noexcept {
        return until_awaitable(*this, delimiter, max);
    }
    /// Produces a readable compiler error.
    template <std::convertible_to<std::string_view> Text>
    until_awaitable read_until(const Text&, std::size_t = default_max)
        COIL_DELETE("the delimiter is one char: read_until('\\n'); lines() also removes the '\\r' "
                    "of \"\\r\\n\"");
    /// Whether the last read_until() found its delimiter; false if the stream ended first.
    [[nodiscard]] bool delimited() const noexcept { return delimited_; }

    /// Reads until `buf` is full and returns its size; -ENODATA if the stream ends first. On an
    /// error it returns -errno even if some bytes were read. At most 0x7ffff000 bytes.
    task<io_result> read_exact(mutable_buffer buf COIL_LIFETIMEBOUND) {
        [[maybe_unused]] const detail::exclusive_call here(calls_, two_calls);
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

    /// byte_source: returns bytes from the buffer first.
    task<io_result> read_some(mutable_buffer buf COIL_LIFETIMEBOUND) {
        [[maybe_unused]] const detail::exclusive_call here(calls_, two_calls);
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
    [[nodiscard]] line_range lines(std::size_t max = default_max) noexcept COIL_LIFETIMEBOUND {
        return line_range(*this, max);
    }

private:
    using view = std::optional<std::string_view>;

    static constexpr const char* two_calls =
        "two calls of one buffered_reader at a time, by two coroutines or on two threads.";

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

    /// Whether the caller may continue without letting other coroutines run.
    [[nodiscard]] static bool may_go_on() noexcept {
        return detail::immediate_await().await_ready();
    }

    /// Returns `found` after other coroutines have run.
    static task<view> found_later(view found) {
        co_await detail::yield_awaiter();
        co_return found;
    }

    task<view> read_until_slowly(char delimiter, std::size_t max) {
        [[maybe_unused]] const detail::exclusive_call here(calls_, two_calls);
        view found;
        while (!find(delimiter, max, found)) {
            buffer_.grow_for(max);
            // The same as fill(), without another coroutine frame.
            const int n = io_result(co_await from_.read_some(buffer_.room())).value();
            if (n == 0) {
                co_return buffer_.take_rest();
            }
            buffer_.filled(static_cast<std::size_t>(n));
        }
        co_return found;
    }

    Source from_;
    detail::read_buffer buffer_;
    bool delimited_ = false;
    detail::call_in_progress calls_;
};

template <class Source>
buffered_reader(Source&&) -> buffered_reader<Source>;
template <class Source>
buffered_reader(Source&&, std::size_t) -> buffered_reader<Source>;
buffered_reader() -> buffered_reader<detail::no_stream&>; // a readable compiler error

/// The awaitable of buffered_reader::read_until(), or of the next line. If the delimiter is in the
/// buffer, it does not suspend, except after many such awaits in a row.
template <class Source>
template <bool of_line>
class [[nodiscard("did you forget to co_await?")]] buffered_reader<Source>::basic_until_awaitable
    : public detail::not_its_result<
          typename buffered_reader<Source>::template basic_until_awaitable<of_line>> {
public:
    basic_until_awaitable(buffered_reader& of, char delimiter, std::size_t max) noexcept
        : reader_(&of), max_(max), delimiter_(delimiter) {}

    class awaiter {
    public:
        explicit awaiter(const basic_until_awaitable& what) noexcept : what_(what) {}

        [[nodiscard]] bool await_ready() {
            buffered_reader& reader = *what_.reader_;
            reader.calls_.check(two_calls);
            if (!reader.buffer_.try_take_until(what_.delimiter_, what_.max_, found_)) [[unlikely]] {
                return false;
            }
            reader.delimited_ = true;
            if (may_go_on()) [[likely]] {
                return true;
            }
            goes_on_later_ = true;
            return false;
        }
        template <class P>
        auto await_suspend(std::coroutine_handle<P> waiter) {
            slow_.start(goes_on_later_
                            ? found_later(found_)
                            : what_.reader_->read_until_slowly(what_.delimiter_, what_.max_));
            return slow_.await_suspend(waiter);
        }
        view await_resume() {
            if (slow_.is_started()) [[unlikely]] {
                const view result = slow_.await_resume();
                if (!result || !what_.reader_->delimited()) {
                    return result;
                }
                found_ = *result;
            }
            // Loads the two members separately: a single load of both would stall, because two
            // stores cannot be forwarded to one load.
            const char* const text = found_.data();
            std::size_t size = found_.size();
            if constexpr (of_line) {
                if (size != 0 && text[size - 1] == '\r') {
                    --size;
                }
            }
            return view(std::in_place, text, size);
        }

    private:
        basic_until_awaitable what_;
        std::string_view found_;
        bool goes_on_later_ = false;
        detail::late_task<view> slow_;
    };
    [[nodiscard]] awaiter operator co_await() const noexcept { return awaiter(*this); }

private:
    buffered_reader* reader_;
    std::size_t max_;
    char delimiter_;
};

/// The range of buffered_reader::lines().
template <class Source>
class buffered_reader<Source>::line_range {
public:
    line_range(buffered_reader& of, std::size_t max) noexcept : reader_(&of), max_(max) {}
    /// Produce readable compiler errors.
    void operator co_await() const COIL_DELETE_COPY("await its elements: co_await lines.next()");
    void begin() const
        COIL_DELETE_COPY("write while (auto line = co_await lines.next()) instead of for");
    void end() const
        COIL_DELETE_COPY("write while (auto line = co_await lines.next()) instead of for");

    /// The next line; nullopt at the end.
    [[nodiscard("did you forget to co_await?")]] basic_until_awaitable<true> next() noexcept {
        return basic_until_awaitable<true>(*reader_, '\n', max_);
    }

private:
    buffered_reader* reader_;
    std::size_t max_;
};

} // namespace coil
