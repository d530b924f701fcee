#include <coil/stream/detail/read_buffer.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
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

struct search {
    const char* behind; // the last window that was searched
    std::uint64_t hits; // in that window
};

/// Searches whole windows until one has hits.
search search_windows(const char* at, const char* end, char wanted) noexcept {
    while (static_cast<std::size_t>(end - at) >= window_size) {
        const std::uint64_t hits = find_in_window(at, wanted);
        at += window_size;
        if (hits != 0) {
            return {at, hits};
        }
    }
    return {at, 0};
}

/// The same with wider registers.
[[gnu::target("avx2")]] search search_windows_avx2(const char* at, const char* end,
                                                   char wanted) noexcept {
    const __m256i pattern = _mm256_set1_epi8(wanted);
    while (static_cast<std::size_t>(end - at) >= window_size) {
        const auto* const parts = reinterpret_cast<const __m256i*>(at);
        const __m256i low = _mm256_cmpeq_epi8(_mm256_loadu_si256(parts), pattern);
        const __m256i high = _mm256_cmpeq_epi8(_mm256_loadu_si256(parts + 1), pattern);
        const auto low_bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(low));
        const auto high_bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(high));
        at += window_size;
        if ((low_bits | high_bits) != 0) {
            return {at, low_bits | static_cast<std::uint64_t>(high_bits) << 32U};
        }
    }
    return {at, 0};
}

const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

} // namespace

bool read_buffer::scan() noexcept {
#if defined(__SSE2__)
    const search done = has_avx2 ? search_windows_avx2(scanned_, end_, scanned_for_)
                                 : search_windows(scanned_, end_, scanned_for_);
    scanned_ = done.behind;
    if (done.hits != 0) [[likely]] {
        window_ = scanned_ - window_size;
        hits_ = done.hits;
        return true;
    }
    return scan_rest();
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

#if defined(__SSE2__)
/// Scans the last bytes, which are fewer than a window. A function of its own, so that scan() needs
/// no stack.
bool read_buffer::scan_rest() noexcept {
    const auto rest = static_cast<std::size_t>(end_ - scanned_);
    if (rest == 0) {
        return false;
    }
    char last[window_size];
    std::memcpy(last, scanned_, rest);
    const std::uint64_t valid = (std::uint64_t{1} << rest) - 1;
    window_ = scanned_;
    hits_ = find_in_window(last, scanned_for_) & valid;
    scanned_ = end_;
    return hits_ != 0;
}
#endif

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
