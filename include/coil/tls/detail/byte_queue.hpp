#pragma once

#include <coil/core/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace coil::tls::detail {

/// A FIFO queue of bytes in one block of memory. An empty queue keeps only a small block.
class byte_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    [[nodiscard]] const_buffer bytes() const noexcept {
        return {memory_.get() + begin_, end_ - begin_};
    }

    /// Makes space for `more` bytes. Returns false if the allocation fails.
    [[nodiscard]] bool reserve(std::size_t more) noexcept {
        if (more <= capacity_ - end_) {
            return true;
        }
        const std::size_t used = end_ - begin_;
        const std::size_t larger = std::max(used + more, used * 2);
        std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[larger]);
        if (!memory) {
            return false;
        }
        if (used > 0) {
            std::memcpy(memory.get(), memory_.get() + begin_, used);
        }
        memory_ = std::move(memory);
        capacity_ = larger;
        begin_ = 0;
        end_ = used;
        return true;
    }
    [[nodiscard]] bool append(const void* data, std::size_t size) noexcept {
        if (!reserve(size)) {
            return false;
        }
        std::memcpy(memory_.get() + end_, data, size);
        end_ += size;
        return true;
    }
    void consume(std::size_t size) noexcept {
        begin_ += size;
        if (empty()) {
            clear();
        }
    }
    void clear() noexcept {
        begin_ = end_ = 0;
        if (capacity_ > kept_capacity) {
            memory_.reset();
            capacity_ = 0;
        }
    }

private:
    /// The largest block that an empty queue keeps.
    static constexpr std::size_t kept_capacity = 128;

    std::unique_ptr<std::byte[]> memory_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t capacity_ = 0;
};

} // namespace coil::tls::detail
