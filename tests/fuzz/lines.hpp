#pragma once

#include "fuzz/input.hpp"

#include <coil/context/io_context.hpp>
#include <coil/core/task.hpp>
#include <coil/stream/buffered_reader.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace fuzz {

namespace lines_target {

/// A source that returns the bytes of a text in pieces of varying size. The next call after
/// fail_once() fails.
class source {
public:
    source(std::string_view text, std::size_t step) noexcept : text_(text), step_(step) {}

    coil::task<coil::io_result> read_some(coil::mutable_buffer to) {
        require(to.size() > 0, "a read from the source has a buffer of at least one byte");
        if (std::exchange(fails_, false)) {
            co_return coil::io_result(-EIO);
        }
        const std::size_t n = std::min({step_, to.size(), text_.size() - at_});
        if (n > 0) {
            std::memcpy(to.data(), text_.data() + at_, n);
        }
        at_ += n;
        step_ = step_ * 5 % 61 + 1;
        co_return coil::io_result(static_cast<int>(n));
    }
    void fail_once() noexcept { fails_ = true; }
    [[nodiscard]] std::size_t position() const noexcept { return at_; }

private:
    std::string_view text_;
    std::size_t step_;
    std::size_t at_ = 0;
    bool fails_ = false;
};

/// A buffered_reader, compared with a model of it: a position in the whole text.
class comparison {
public:
    comparison(std::string_view text, std::size_t step, std::size_t capacity)
        : text_(text), source_(text, step), reader_(source_, capacity) {}

    coil::task<> run(reader& decisions) {
        while (!decisions.empty()) {
            const std::uint8_t what = decisions.byte();
            if (what % 16 == 15) {
                source_.fail_once();
            }
            const std::size_t size = decisions.byte();
            switch (what / 16 % 4) {
            case 0:
                co_await until('\n', size, true);
                break;
            case 1:
                co_await until(static_cast<char>(decisions.byte()), size, false);
                break;
            case 2:
                co_await exact(size);
                break;
            default:
                co_await some(size);
            }
            require(reader_.buffered() == text_.substr(at_, source_.position() - at_),
                    "the buffer contains the bytes that were read and not returned");
        }
        co_await drain();
    }

private:
    using text = std::optional<std::string>;

    /// The expected result of read_until() or, if `of_line`, of lines(), which removes the '\r'.
    /// Sets `is_too_long` if the call must throw instead.
    text expected(char delimiter, std::size_t max, bool of_line, bool& is_too_long) {
        const std::string_view rest = text_.substr(at_);
        const std::size_t found = rest.find(delimiter);
        delimited_ = found != std::string_view::npos;
        std::string_view result = rest.substr(0, found);
        is_too_long = result.size() > max;
        if (is_too_long) {
            return std::nullopt;
        }
        at_ += result.size() + (delimited_ ? 1 : 0);
        if (of_line && delimited_ && result.ends_with('\r')) {
            result.remove_suffix(1);
        }
        return result.empty() && !delimited_ ? std::nullopt : text(result);
    }

    coil::task<> until(char delimiter, std::size_t max, bool of_line) {
        const std::size_t before = at_;
        bool is_too_long = false;
        const text wanted = expected(delimiter, max, of_line, is_too_long);
        std::error_code error;
        text got;
        try {
            if (of_line) {
                auto lines = reader_.lines(max);
                const std::optional<std::string_view> line = co_await lines.next();
                got = line ? text(*line) : std::nullopt;
            } else {
                const std::optional<std::string_view> part =
                    co_await reader_.read_until(delimiter, max);
                got = part ? text(*part) : std::nullopt;
            }
        } catch (const std::system_error& e) {
            error = e.code();
        }
        if (error) {
            at_ = before; // a failed call consumes nothing
            require(error == std::errc::io_error || is_too_long,
                    "no text within the limit is refused");
            require(error == std::errc::io_error || error == std::errc::message_size,
                    "a text that is longer than the limit fails with message_size");
            co_return;
        }
        require(!is_too_long, "a text that is longer than the limit is not returned");
        require(got == wanted, "the result is the text before the delimiter");
        require(!got || reader_.delimited() == delimited_,
                "delimited() returns whether the delimiter was found");
    }

    coil::task<> exact(std::size_t size) {
        std::string bytes(size, '\0');
        const int n = co_await reader_.read_exact({bytes.data(), bytes.size()});
        if (n == -EIO || n == -ENODATA) {
            require(n == -EIO || size > text_.size() - at_,
                    "the end is reported only at the end of the text");
            // How much of it was consumed is not specified.
            const std::size_t next = source_.position() - reader_.buffered().size();
            require(next >= at_, "no byte is returned twice");
            at_ = next;
            co_return;
        }
        require(n == static_cast<int>(size), "read_exact() reads everything or fails");
        require(bytes == text_.substr(at_, size), "the bytes are the stream's");
        at_ += size;
    }

    coil::task<> some(std::size_t size) {
        std::string bytes(size, '\0');
        if (size == 0) {
            co_return; // a source must not be asked for zero bytes
        }
        const int n = co_await reader_.read_some({bytes.data(), bytes.size()});
        if (n == -EIO) {
            co_return;
        }
        require(n >= 0 && static_cast<std::size_t>(n) <= size,
                "read_some() returns no more than the size of the buffer");
        require((n == 0) == (at_ == text_.size()),
                "read_some() returns 0 at the end and only there");
        require(bytes.substr(0, static_cast<std::size_t>(n)) ==
                    text_.substr(at_, static_cast<std::size_t>(n)),
                "the bytes are the stream's");
        at_ += static_cast<std::size_t>(n);
    }

    /// Reads the remaining lines, so that lost bytes are found, and then the end twice.
    coil::task<> drain() {
        while (at_ < text_.size()) {
            const std::size_t before = at_;
            co_await until('\n', text_.size(), true);
            require(at_ > before || failures_++ == 0, "a read without a failure makes progress");
        }
        co_await until('\n', 0, true);
        co_await until('\0', 0, false);
    }

    std::string_view text_;
    source source_;
    coil::buffered_reader<source&> reader_;
    std::size_t at_ = 0;
    bool delimited_ = false;
    int failures_ = 0;
};

inline coil::task<> compare(bytes input, std::exception_ptr& failure) {
    reader from(input);
    const std::size_t step = from.byte() % 61 + 1U;
    const std::size_t capacity = from.byte();
    const std::string_view decisions = from.text(from.byte() % 64);
    comparison both(from.text(), step, capacity);
    reader script({reinterpret_cast<const std::uint8_t*>(decisions.data()), decisions.size()});
    try {
        co_await both.run(script);
    } catch (...) {
        failure = std::current_exception();
    }
}

} // namespace lines_target

/// Calls of a buffered_reader. The input is the size of the first piece, the buffer's capacity, the
/// length of the list of calls, that list, and the text.
inline void lines(bytes input) {
    static coil::io_context context; // one for all inputs: creating it takes longer than an input
    std::exception_ptr failure;
    context.co_spawn(lines_target::compare(input, failure));
    context.run();
    if (failure) {
        std::rethrow_exception(failure);
    }
}

} // namespace fuzz
