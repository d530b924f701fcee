#pragma once

#include <coil/core/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace coil::tls::detail {

/// A FIFO queue of bytes in one block of memory, which is freed when the queue becomes empty.
class byte_queue {
public:
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    [[nodiscard]] const_buffer bytes() const noexcept {
        return {memory_.get() + begin_, std::size_t{end_ - begin_}};
    }

    /// Makes space for `more` bytes. Returns false if the allocation fails.
    [[nodiscard]] bool reserve(std::size_t more) noexcept {
        if (more <= capacity_ - end_) {
            return true;
        }
        const std::size_t used = end_ - begin_;
        const std::size_t larger = std::max(used + more, used * 2);
        if (larger > largest) {
            return false;
        }
        std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[larger]);
        if (!memory) {
            return false;
        }
        if (used > 0) {
            std::memcpy(memory.get(), memory_.get() + begin_, used);
        }
        memory_ = std::move(memory);
        capacity_ = static_cast<std::uint32_t>(larger);
        begin_ = 0;
        end_ = static_cast<std::uint32_t>(used);
        return true;
    }
    [[nodiscard]] bool append(const void* data, std::size_t size) noexcept {
        if (!reserve(size)) {
            return false;
        }
        std::memcpy(memory_.get() + end_, data, size);
        end_ += static_cast<std::uint32_t>(size);
        return true;
    }
    void consume(std::size_t size) noexcept {
        begin_ += static_cast<std::uint32_t>(size);
        if (empty()) {
            clear();
        }
    }
    void clear() noexcept {
        memory_.reset();
        begin_ = end_ = capacity_ = 0;
    }

private:
    static constexpr std::size_t largest = std::size_t{1} << 30;

    std::unique_ptr<std::byte[]> memory_;
    std::uint32_t begin_ = 0;
    std::uint32_t end_ = 0;
    std::uint32_t capacity_ = 0;
};

} // namespace coil::tls::detail
