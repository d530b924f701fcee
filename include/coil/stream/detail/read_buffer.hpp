#pragma once

#include <coil/base/owned.hpp>
#include <coil/core/buffer.hpp>

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
        if (next_hit_ == hits_end_ && !scan()) {
            return false;
        }
        const char* const at = scan_base_ + *next_hit_;
        const auto length = static_cast<std::size_t>(at - begin_);
        if (length > max) [[unlikely]] {
            return false;
        }
        ++next_hit_;
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
    /// The position of a delimiter that was found and not yet consumed, relative to scan_base_.
    using hit = std::uint16_t;

    [[nodiscard]] std::size_t unread_size() const noexcept {
        return static_cast<std::size_t>(end_ - begin_);
    }
    void scan_for(char delimiter) noexcept {
        scanned_for_ = delimiter;
        forget_scan();
    }
    void forget_scan() noexcept {
        scanned_ = begin_;
        next_hit_ = hits_end_;
    }
    /// Scans on until it finds delimiters; returns false if the rest contains none. Precondition:
    /// all earlier hits are consumed.
    [[nodiscard]] bool scan() noexcept;
    /// The list of hits and the bytes, in the block of memory_.
    [[nodiscard]] hit* hits() const noexcept;
    [[nodiscard]] char* bytes() const noexcept;
    static owned<char[]> allocate(std::size_t capacity);
    /// Moves the unread bytes to `bytes`, which may be in the current block.
    void move_to(char* bytes) noexcept;

    owned<char[]> memory_; // the list of hits, and `capacity_` bytes
    std::size_t capacity_;
    const char* begin_ = nullptr; // of the unread bytes; null before the first read
    const char* end_ = nullptr;
    const char* scanned_ = nullptr; // the unread bytes before this were searched for the delimiter
    const char* scan_base_ = nullptr;
    const hit* next_hit_ = nullptr;
    const hit* hits_end_ = nullptr;
    char scanned_for_ = '\0'; // the delimiter
};

} // namespace coil::detail
