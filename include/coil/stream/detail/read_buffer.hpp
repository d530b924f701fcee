#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/buffer.hpp>

#include <cstddef>
#include <optional>
#include <string_view>

namespace coil::detail {

/// Bytes that were read from a stream and not yet returned. The memory is allocated at the first
/// read.
class read_buffer {
public:
    explicit read_buffer(std::size_t capacity) noexcept : capacity_(capacity) {}

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::string_view unread() const noexcept {
        return {memory_.get() + begin_, end_ - begin_};
    }

    /// Consumes and returns the text before the delimiter, and drops the delimiter. nullopt: no
    /// delimiter was read yet. Throws std::system_error (message_size) if there is none in `max`
    /// bytes.
    std::optional<std::string_view> take_until(char delimiter, std::size_t max);
    /// Consumes and returns all bytes; nullopt if there are none.
    std::optional<std::string_view> take_rest() noexcept;
    /// Moves as many bytes to `to` as are available and fit.
    std::size_t take(mutable_buffer to) noexcept;

    /// Ensures space for at least one more byte of a text of at most `max` bytes and its delimiter.
    void grow_for(std::size_t max);
    /// The free space to read into. It is empty if the buffer is full: call grow_for() first.
    [[nodiscard]] mutable_buffer room();
    void filled(std::size_t bytes) noexcept { end_ += bytes; }

private:
    owned<char[]> memory_;
    std::size_t capacity_;
    std::size_t begin_ = 0; // of the unread bytes
    std::size_t end_ = 0;
    std::size_t scanned_ = 0; // the number of unread bytes that were searched
    char scanned_for_ = '\0'; // the delimiter that they do not contain
};

} // namespace coil::detail
