#pragma once

#include "syscalls.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>

// Directory entries, as getdents64(2) writes them to memory. Jobs of the pool read one buffer at a
// time and may end after each; readdir(3) hides where its buffer ends.

namespace coil::fs::detail {

/// A record written by getdents64. Its fields are copied out individually, as no objects have been
/// created in the buffer.
class raw_entry {
public:
    explicit raw_entry(const std::byte* at) noexcept : at_(at) {}

    [[nodiscard]] std::uint64_t inode() const noexcept { return field<std::uint64_t>(0); }
    /// The position after this entry, for lseek(2).
    [[nodiscard]] std::int64_t position_behind() const noexcept { return field<std::int64_t>(8); }
    [[nodiscard]] std::size_t length() const noexcept { return field<std::uint16_t>(16); }
    /// DT_DIR etc.; DT_UNKNOWN if the file system does not provide it.
    [[nodiscard]] unsigned char type() const noexcept { return field<unsigned char>(18); }
    [[nodiscard]] const char* name() const noexcept {
        return reinterpret_cast<const char*>(at_ + 19);
    }
    [[nodiscard]] bool is_dot_or_dot_dot() const noexcept {
        const char* const n = name();
        return n[0] == '.' && (n[1] == '\0' || (n[1] == '.' && n[2] == '\0'));
    }
    [[nodiscard]] const std::byte* at() const noexcept { return at_; }

private:
    template <class T>
    [[nodiscard]] T field(std::size_t offset) const noexcept {
        T value;
        std::memcpy(&value, at_ + offset, sizeof value);
        return value;
    }

    const std::byte* at_;
};

/// The records in a buffer, without "." and "..".
class raw_entries {
public:
    raw_entries(const std::byte* begin, std::size_t size) noexcept
        : at_(begin), end_(begin + size) {
        skip();
    }

    [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
    [[nodiscard]] raw_entry front() const noexcept { return raw_entry(at_); }
    void pop() noexcept {
        at_ += front().length();
        skip();
    }

private:
    void skip() noexcept {
        while (at_ != end_ && front().is_dot_or_dot_dot()) {
            at_ += front().length();
        }
    }

    const std::byte* at_;
    const std::byte* end_;
};

/// Returns the number of bytes written to `buffer`, 0 at the end, -errno. A removed directory has
/// no more entries, as with readdir(3); the system call returns ENOENT.
inline int read_entries(int directory, std::byte* buffer, std::size_t size) noexcept {
    const int result = sys::getdents64(directory, buffer, size);
    return result == -ENOENT ? 0 : result;
}

} // namespace coil::fs::detail
