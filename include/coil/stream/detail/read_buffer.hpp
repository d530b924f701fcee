#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/buffer.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coil::detail {

/// Bytes that were read from a stream and not yet returned. The memory is allocated on the first
/// read.
class read_buffer {
public:
    explicit read_buffer(std::size_t capacity) noexcept : capacity_(capacity) {}

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::string_view unread() const noexcept { return {begin_, unread_size()}; }

    /// The usual case of take_until(): consumes the text before the delimiter and the delimiter, if
    /// both are in the buffer and the text has at most `max` bytes. Otherwise returns false and
    /// consumes nothing.
    [[nodiscard]] bool try_take_until(char delimiter, std::size_t max,
                                      std::string_view& taken) noexcept {
        if (delimiter != scanned_for_) [[unlikely]] {
            scan_for(delimiter);
        }
        if (hits_ == 0 && !scan()) {
            return false;
        }
        const char* const at = window_ + std::countr_zero(hits_);
        const auto length = static_cast<std::size_t>(at - begin_);
        if (length > max) [[unlikely]] {
            return false;
        }
        hits_ &= hits_ - 1;
        taken = {begin_, length};
        begin_ = at + 1;
        return true;
    }
    /// Consumes and returns the text before the delimiter, and drops the delimiter. Returns nullopt
    /// if no delimiter was read yet. Throws std::system_error (message_size) if the text is longer
    /// than `max` bytes.
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
    [[nodiscard]] std::size_t unread_size() const noexcept {
        return static_cast<std::size_t>(end_ - begin_);
    }
    void scan_for(char delimiter) noexcept {
        scanned_for_ = delimiter;
        forget_scan();
    }
    void forget_scan() noexcept {
        scanned_ = begin_;
        hits_ = 0;
    }
    /// Scans until it finds delimiters; hits_ must be 0. Returns false if there are none.
    [[nodiscard]] bool scan() noexcept;
    [[nodiscard]] bool scan_rest() noexcept;
    /// Moves the unread bytes to the front of `memory`, which may be the current block.
    void move_to(char* memory) noexcept;

    owned<char[]> memory_;
    std::size_t capacity_;
    const char* begin_ = nullptr; // of the unread bytes; null before the first read
    const char* end_ = nullptr;
    const char* scanned_ = nullptr; // the unread bytes before this were searched for the delimiter
    const char* window_ = nullptr;  // the 64 bytes that hits_ describes
    std::uint64_t hits_ = 0;        // bit n: window_[n] is a delimiter not yet consumed
    char scanned_for_ = '\0';       // the delimiter
};

} // namespace coil::detail
