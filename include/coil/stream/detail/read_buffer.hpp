#pragma once

#include <coil/core/buffer.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace coil::detail {

/// Bytes that were read and not yet handed out. Memory is taken when the first byte is read.
class read_buffer {
public:
    explicit read_buffer(std::size_t capacity) noexcept : capacity_(capacity) {}

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::string_view unread() const noexcept {
        return {memory_.get() + begin_, end_ - begin_};
    }

    /// Hands out what comes before the delimiter, and drops the delimiter. Nothing: it is not there
    /// yet. Throws std::system_error (message_size) when it is not within `max` bytes.
    std::optional<std::string_view> take_until(char delimiter, std::size_t max);
    /// Hands out everything, if there is anything.
    std::optional<std::string_view> take_rest() noexcept;
    /// Moves out as much as there is and `to` holds.
    std::size_t take(mutable_buffer to) noexcept;

    /// Makes room for at least one more byte of a text of at most `max` bytes and its delimiter.
    void grow_for(std::size_t max);
    /// Where to read to: at least one byte, unless grow_for() should have been called.
    [[nodiscard]] mutable_buffer room();
    void filled(std::size_t bytes) noexcept { end_ += bytes; }

private:
    std::unique_ptr<char[]> memory_;
    std::size_t capacity_;
    std::size_t begin_ = 0; // of what is unread
    std::size_t end_ = 0;
    std::size_t scanned_ = 0; // so much of the unread has no delimiter...
    char scanned_for_ = '\0'; // ...of this kind
};

} // namespace coil::detail
