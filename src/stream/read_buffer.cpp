#include <coil/stream/detail/read_buffer.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coil::detail {

namespace {

constexpr std::size_t list_bytes = 256; // a multiple of a cache line

#if defined(__x86_64__)
constexpr std::size_t window_size = 64;
/// A scan searches at most this many windows: the data that follows may not be lines.
constexpr std::size_t windows_at_once = 16;
/// A scan ends with the window that has the last of these many hits.
constexpr std::size_t enough_hits = 32;
/// The hits of a window are stored in groups of this size, of which the last may be incomplete.
constexpr std::size_t group_size = 4;
static_assert((enough_hits - 1 + window_size + group_size) * sizeof(std::uint16_t) <= list_bytes);

struct scan_result {
    const char* behind; // the last window that was searched
    std::uint16_t* end; // of the list of hits
};

/// Appends the positions of a window's hits, the set bits of `hits`, to a list. Whole groups are
/// stored: a loop over the hits alone would be mispredicted about once per line.
[[gnu::always_inline]] inline std::uint16_t* append_hits(std::uint16_t* end, std::uint64_t hits,
                                                         std::size_t offset) noexcept {
    const auto number = static_cast<std::size_t>(std::popcount(hits));
    std::size_t stored = 0;
    do {
        for (std::size_t i = 0; i < group_size; ++i, ++stored) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(hits));
            end[stored] = static_cast<std::uint16_t>(offset + bit);
            hits &= hits - 1;
        }
    } while (stored < number);
    return end + number;
}

/// Searches `count` windows and lists the positions of the hits, relative to `at`.
[[gnu::target("avx2,bmi,popcnt")]] scan_result
search_windows(const char* at, std::size_t count, std::uint16_t* list, char wanted) noexcept {
    std::array<std::uint64_t, windows_at_once> hits; // NOLINT(*-member-init): the first `count` are
    std::uint64_t any = 0;
    const __m256i pattern = _mm256_set1_epi8(wanted);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* const parts = reinterpret_cast<const __m256i*>(at + i * window_size);
        const __m256i low = _mm256_cmpeq_epi8(_mm256_loadu_si256(parts), pattern);
        const __m256i high = _mm256_cmpeq_epi8(_mm256_loadu_si256(parts + 1), pattern);
        const auto high_bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(high));
        hits[i] = static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
                  static_cast<std::uint64_t>(high_bits) << 32U;
        any |= hits[i];
    }
    if (any == 0) {
        return {at + count * window_size, list};
    }
    std::uint16_t* end = list;
    std::size_t i = 0;
    for (; i < count && static_cast<std::size_t>(end - list) < enough_hits; ++i) {
        end = append_hits(end, hits[i], i * window_size);
    }
    return {at + i * window_size, end};
}

/// The compiler's run-time library detects the features before the constructors of static objects
/// run, which may use a read_buffer.
bool can_search_windows() noexcept {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
           __builtin_cpu_supports("popcnt") != 0;
}
#endif

} // namespace

read_buffer::hit* read_buffer::hits() const noexcept {
    return reinterpret_cast<hit*>(memory_.get());
}

char* read_buffer::bytes() const noexcept { return memory_.get() + list_bytes; }

owned<char[]> read_buffer::allocate(std::size_t capacity) {
    return owned<char[]>(new char[list_bytes + capacity]);
}

bool read_buffer::scan() noexcept {
    std::uint16_t* const list = hits();
    next_hit_ = hits_end_ = list;
    auto rest = static_cast<std::size_t>(end_ - scanned_);
#if defined(__x86_64__)
    for (; rest >= window_size && can_search_windows();
         rest = static_cast<std::size_t>(end_ - scanned_)) {
        const std::size_t count = std::min(rest / window_size, windows_at_once);
        const scan_result done = search_windows(scanned_, count, list, scanned_for_);
        scan_base_ = scanned_;
        scanned_ = done.behind;
        hits_end_ = done.end;
        if (hits_end_ != list) [[likely]] {
            return true;
        }
    }
#endif
    const void* const found = rest > 0 ? std::memchr(scanned_, scanned_for_, rest) : nullptr;
    if (found == nullptr) {
        scanned_ = end_;
        return false;
    }
    scan_base_ = static_cast<const char*>(found);
    scanned_ = scan_base_ + 1;
    *list = 0;
    ++hits_end_;
    return true;
}

std::optional<std::string_view> read_buffer::take_until(char delimiter, std::size_t max) {
    if (std::string_view taken; try_take_until(delimiter, max, taken)) {
        return taken;
    }
    // The delimiter is not there, or it comes after more than `max` bytes.
    if (next_hit_ != hits_end_ || unread_size() > max) {
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

void read_buffer::move_to(char* bytes) noexcept {
    const std::size_t used = unread_size();
    const auto scanned = next_hit_ == hits_end_ ? scanned_ - begin_ : 0;
    if (used > 0) {
        std::memmove(bytes, begin_, used);
    }
    begin_ = bytes;
    end_ = bytes + used;
    scanned_ = bytes + scanned;
    next_hit_ = hits_end_;
}

void read_buffer::grow_for(std::size_t max) {
    const std::size_t used = unread_size();
    if (used < capacity_) {
        return;
    }
    // take_until() throws beyond `max` bytes of text; the delimiter needs one more byte.
    const std::size_t most = max < std::string_view::npos / 2 ? max + 1 : max;
    const std::size_t larger = std::max(std::min(capacity_ * 2, most), used + 1);
    owned<char[]> memory = allocate(larger);
    move_to(memory.get() + list_bytes);
    memory_ = std::move(memory);
    capacity_ = larger;
}

mutable_buffer read_buffer::room() {
    if (!memory_) {
        memory_ = allocate(capacity_);
        begin_ = end_ = scanned_ = bytes();
    }
    if (begin_ != bytes()) {
        move_to(bytes());
    }
    const std::size_t used = unread_size();
    return {bytes() + used, capacity_ - used};
}

} // namespace coil::detail
