#include "buffer_watch.hpp"

#include <coil/sim/random.hpp>

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define COIL_SIM_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COIL_SIM_POISONS 1
#endif
#endif
#ifdef COIL_SIM_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace coil::sim::detail {

namespace {

constexpr auto filler = std::byte{0xe5};
constexpr std::size_t all_below = 4096; // smaller buffers are watched completely
constexpr std::size_t edge = 1024;
constexpr std::size_t sample = 64;
constexpr unsigned samples = 16;

} // namespace

void buffer_watch::begin(std::span<const ::iovec> memory, bool filled, std::uint64_t salt) {
    filled_ = filled;
    for (const ::iovec& part : memory) {
        if (part.iov_base != nullptr && part.iov_len != 0) {
            choose(static_cast<std::byte*>(part.iov_base), part.iov_len, salt);
        }
    }
    if (!filled_) {
        sum_ = sum();
        return;
    }
    for (const piece& p : pieces_) {
        kept_.insert(kept_.end(), p.begin(), p.end());
    }
    for (const piece& p : pieces_) { // pieces may overlap: save all before overwriting any
        std::memset(p.data(), static_cast<int>(filler), p.size());
    }
    poison(true);
}

const char* buffer_watch::end() noexcept {
    bool untouched = true;
    const bool freed = is_freed(); // freed memory must not be accessed
    if (filled_ && !freed) {
        poison(false);
        for (const piece& p : pieces_) {
            untouched = untouched && p[0] == filler &&
                        std::memcmp(p.data(), p.data() + 1, p.size() - 1) == 0;
        }
        const std::byte* from = kept_.data();
        for (const piece& p : pieces_) {
            std::memcpy(p.data(), from, p.size());
            from += p.size();
        }
    } else if (!freed) {
        untouched = sum() == sum_;
    }
    pieces_.clear();
    poisoned_.clear();
    kept_.clear();
    return freed ? "was freed" : untouched ? nullptr : "was written to";
}

void buffer_watch::choose(std::byte* data, std::size_t size, std::uint64_t salt) {
#ifdef COIL_SIM_POISONS
    if (filled_) {
        poisoned_.emplace_back(data, size);
    }
#endif
    if (size <= all_below) {
        pieces_.emplace_back(data, size);
        return;
    }
    pieces_.emplace_back(data, edge);
    pieces_.emplace_back(data + size - edge, edge);
    random_source random(salt);
    for (unsigned i = 0; i < samples; ++i) {
        const std::size_t middle = size - 2 * edge - sample;
        pieces_.emplace_back(data + edge + random.below(middle + 1), sample);
    }
}

std::uint64_t buffer_watch::sum() const noexcept {
    constexpr std::uint64_t factor = 0x9fb21c651e98df25;
    std::uint64_t sum = 0;
    for (const piece& p : pieces_) {
        const std::byte* data = p.data();
        std::size_t size = p.size();
        for (; size >= 8; data += 8, size -= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, data, 8);
            sum = (sum ^ word) * factor;
            sum ^= sum >> 29;
        }
        for (; size > 0; ++data, --size) {
            sum = (sum ^ static_cast<std::uint64_t>(*data)) * factor;
        }
    }
    return sum;
}

bool buffer_watch::is_freed() const noexcept {
#ifdef COIL_SIM_POISONS
    for (const piece& p : pieces_) {
        void* frames[1];
        int thread = 0;
        if (__asan_get_free_stack(p.data(), frames, 1, &thread) != 0) {
            return true;
        }
    }
#endif
    return false;
}

void buffer_watch::poison([[maybe_unused]] bool on) const noexcept {
#ifdef COIL_SIM_POISONS
    for (const piece& p : poisoned_) {
        on ? __asan_poison_memory_region(p.data(), p.size())
           : __asan_unpoison_memory_region(p.data(), p.size());
    }
#endif
}

} // namespace coil::sim::detail
