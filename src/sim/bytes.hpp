#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <sys/uio.h>

namespace coil::sim::detail {

/// A FIFO queue of bytes.
class byte_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    void push(const std::byte* from, std::size_t count) {
        if (size_ + count > ring_.size()) {
            grow(size_ + count);
        }
        const std::size_t at = (head_ + size_) & (ring_.size() - 1);
        const std::size_t first = std::min(count, ring_.size() - at);
        std::memcpy(ring_.data() + at, from, first);
        std::memcpy(ring_.data(), from + first, count - first);
        size_ += count;
    }
    /// Copies `count` bytes from `offset` on without removing them.
    void peek(std::byte* to, std::size_t count, std::size_t offset = 0) const noexcept {
        if (count == 0) {
            return;
        }
        const std::size_t at = (head_ + offset) & (ring_.size() - 1);
        const std::size_t first = std::min(count, ring_.size() - at);
        std::memcpy(to, ring_.data() + at, first);
        std::memcpy(to + first, ring_.data(), count - first);
    }
    void drop(std::size_t count) noexcept {
        size_ -= count;
        head_ = size_ == 0 ? 0 : (head_ + count) & (ring_.size() - 1);
    }
    void clear() noexcept { head_ = size_ = 0; }

private:
    void grow(std::size_t least) {
        std::size_t capacity = std::max<std::size_t>(ring_.size(), 256);
        while (capacity < least) {
            capacity *= 2;
        }
        std::vector<std::byte> bigger(capacity);
        peek(bigger.data(), size_);
        ring_ = std::move(bigger);
        head_ = 0;
    }

    std::vector<std::byte> ring_; // its size is a power of two
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

/// Calls `f(pointer, count)` for the pieces of the `most` bytes after the first `skip`, or of fewer
/// if the parts end earlier.
template <class F>
void for_each_part(std::span<const ::iovec> parts, std::size_t skip, std::size_t most, F&& f) {
    for (const ::iovec& part : parts) {
        if (skip >= part.iov_len) {
            skip -= part.iov_len;
            continue;
        }
        const std::size_t count = std::min(part.iov_len - skip, most);
        if (count > 0) {
            f(static_cast<std::byte*>(part.iov_base) + skip, count);
        }
        most -= count;
        skip = 0;
        if (most == 0) {
            return;
        }
    }
}

} // namespace coil::sim::detail
