#pragma once

#include "support/run.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace stream_test {

/// A source that returns `step` bytes at a time, and fails once, at call number `fails_at`.
class script_source {
public:
    explicit script_source(std::string data, std::size_t step = 1 << 20, int fails_at = -1,
                           int error = -EIO)
        : data_(std::move(data)), step_(step), fails_at_(fails_at), error_(error) {}

    coil::task<coil::io_result> read_some(coil::mutable_buffer to) {
        if (calls_++ == fails_at_) {
            co_return coil::io_result(error_);
        }
        const std::size_t n = std::min({step_, to.size(), data_.size() - at_});
        std::memcpy(to.data(), data_.data() + at_, n);
        at_ += n;
        co_return coil::io_result(static_cast<int>(n));
    }
    [[nodiscard]] int calls() const { return calls_; }

private:
    std::string data_;
    std::size_t at_ = 0;
    std::size_t step_;
    int fails_at_;
    int error_;
    int calls_ = 0;
};

/// A sink that takes `step` bytes at a time, and fails once, at call number `fails_at`.
class script_sink {
public:
    explicit script_sink(std::size_t step = 1 << 20, int fails_at = -1, int error = -EPIPE)
        : step_(step), fails_at_(fails_at), error_(error) {}

    coil::task<coil::io_result> write_some(coil::const_buffer from) {
        if (calls_++ == fails_at_) {
            co_return coil::io_result(error_);
        }
        const std::size_t n = std::min(step_, from.size());
        text.append(static_cast<const char*>(from.data()), n);
        co_return coil::io_result(static_cast<int>(n));
    }
    coil::task<coil::io_result> shutdown_write() {
        is_shut_down = true;
        co_return coil::io_result(0);
    }
    [[nodiscard]] int calls() const { return calls_; }

    std::string text;
    bool is_shut_down = false;

private:
    std::size_t step_;
    int fails_at_;
    int error_;
    int calls_ = 0;
};

static_assert(coil::byte_source<script_source>);
static_assert(coil::byte_sink<script_sink>);

/// Bytes that identify their position.
inline std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = static_cast<char>(i * 7 + i / 256);
    }
    return text;
}

} // namespace stream_test
