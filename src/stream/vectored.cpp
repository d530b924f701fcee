#include <coil/stream/vectored.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace coil::detail {

std::span<const const_buffer> remaining_parts::next() noexcept {
    std::size_t count = 0;
    std::size_t left = max_transfer - done_;
    std::size_t skipped = offset_; // of the first buffer
    for (const const_buffer& whole : rest_) {
        const const_buffer b = whole.drop(skipped);
        skipped = 0;
        const std::size_t size = std::min(b.size(), left);
        if (count == most_parts || left == 0) {
            break;
        }
        if (size > 0) {
            window_[count++] = {b.data(), size};
            left -= size;
        }
    }
    return {window_.data(), count};
}

void remaining_parts::advance(std::size_t bytes) noexcept {
    done_ += bytes;
    while (bytes > 0) {
        const std::size_t here = rest_.front().size() - offset_;
        if (bytes < here) {
            offset_ += bytes;
            return;
        }
        bytes -= here;
        offset_ = 0;
        rest_ = rest_.subspan(1);
    }
}

} // namespace coil::detail
