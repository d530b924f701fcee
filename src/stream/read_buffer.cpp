#include <coil/stream/detail/read_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace coil::detail {

namespace {

#if defined(__SSE2__)
constexpr std::size_t window_size = 64;

/// Bit n is set if `at[n]` is `wanted`.
std::uint64_t find_in_window(const char* at, char wanted) noexcept {
    const __m128i pattern = _mm_set1_epi8(wanted);
    std::uint64_t found = 0;
    for (unsigned i = 0; i < window_size; i += 16) {
        const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
        const auto bits =
            static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(part, pattern)));
        found |= static_cast<std::uint64_t>(bits) << i;
    }
    return found;
}
#endif

} // namespace

bool read_buffer::scan() noexcept {
#if defined(__SSE2__)
    while (scanned_ != end_) {
        const auto rest = static_cast<std::size_t>(end_ - scanned_);
        window_ = scanned_;
        if (rest >= window_size) {
            hits_ = find_in_window(window_, scanned_for_);
            scanned_ += window_size;
        } else {
            char last[window_size];
            std::memcpy(last, window_, rest);
            const std::uint64_t valid = (std::uint64_t{1} << rest) - 1;
            hits_ = find_in_window(last, scanned_for_) & valid;
            scanned_ = end_;
        }
        if (hits_ != 0) {
            return true;
        }
    }
    return false;
#else
    const auto rest = static_cast<std::size_t>(end_ - scanned_);
    const void* const found = rest > 0 ? std::memchr(scanned_, scanned_for_, rest) : nullptr;
    if (found == nullptr) {
        scanned_ = end_;
        return false;
    }
    window_ = static_cast<const char*>(found);
    hits_ = 1;
    scanned_ = window_ + 1;
    return true;
#endif
}

std::optional<std::string_view> read_buffer::take_until(char delimiter, std::size_t max) {
    if (std::string_view taken; try_take_until(delimiter, max, taken)) {
        return taken;
    }
    // The delimiter is not there, or it comes after more than `max` bytes.
    if (hits_ != 0 || unread_size() > max) {
        throw std::system_error(std::make_error_code(std::errc::message_size),
                                "coil: no delimiter within " + std::to_string(max) + " bytes");
    }
    return std::nullopt;
}

std::optional<std::string_view> read_buffer::take_rest() noexcept {
    const std::string_view text = unread();
    begin_ = end_;
    forget_scan();
    return text.empty() ? std::nullopt : std::optional(text);
}

std::size_t read_buffer::take(mutable_buffer to) noexcept {
    const std::size_t n = std::min(to.size(), unread_size());
    if (n > 0) {
        std::memcpy(to.data(), begin_, n);
        begin_ += n;
        forget_scan();
    }
    return n;
}

void read_buffer::move_to(char* memory) noexcept {
    const std::size_t used = unread_size();
    const auto scanned = hits_ == 0 ? scanned_ - begin_ : 0;
    if (used > 0) {
        std::memmove(memory, begin_, used);
    }
    begin_ = memory;
    end_ = memory + used;
    scanned_ = memory + scanned;
    hits_ = 0;
}

void read_buffer::grow_for(std::size_t max) {
    const std::size_t used = unread_size();
    if (used < capacity_) {
        return;
    }
    // take_until() throws beyond `max` bytes of text; the delimiter needs one more byte.
    const std::size_t most = max < std::string_view::npos / 2 ? max + 1 : max;
    const std::size_t larger = std::max(std::min(capacity_ * 2, most), used + 1);
    owned<char[]> memory(new char[larger]);
    move_to(memory.get());
    memory_ = std::move(memory);
    capacity_ = larger;
}

mutable_buffer read_buffer::room() {
    if (!memory_) {
        memory_.reset(new char[capacity_]);
        begin_ = end_ = scanned_ = memory_.get();
    }
    if (begin_ != memory_.get()) {
        move_to(memory_.get());
    }
    const std::size_t used = unread_size();
    return {memory_.get() + used, capacity_ - used};
}

} // namespace coil::detail
