#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/uio.h>

namespace coil::sim::detail {

/// Watches the memory of one call while the kernel has it: nobody may write to it, and what it is
/// to be filled with cannot be read, for it is filled with something else until then.
///
/// Of much memory only pieces are watched: its beginning, its end, and some between, which `salt`
/// chooses. With AddressSanitizer all that is to be filled is poisoned, so that whoever touches it
/// is told at once.
class buffer_watch {
public:
    buffer_watch() noexcept = default;
    buffer_watch(const buffer_watch&) = delete;
    buffer_watch& operator=(const buffer_watch&) = delete;

    /// `filled`: by the kernel; else it is what the kernel sends.
    void begin(std::span<const ::iovec> memory, bool filled, std::uint64_t salt);
    [[nodiscard]] bool is_on() const noexcept { return !pieces_.empty(); }
    /// Gives the memory back as it was, and says what is wrong with it: null, "was written to", or,
    /// where AddressSanitizer knows it, "was freed". Only while is_on().
    [[nodiscard]] const char* end() noexcept;

private:
    using piece = std::span<std::byte>;

    void choose(std::byte* data, std::size_t size, std::uint64_t salt);
    [[nodiscard]] std::uint64_t sum() const noexcept;
    [[nodiscard]] bool is_freed() const noexcept;
    void poison(bool on) const noexcept;

    std::vector<piece> pieces_;
    std::vector<piece> poisoned_;
    std::vector<std::byte> kept_; // what was in the pieces before they were filled
    std::uint64_t sum_ = 0;
    bool filled_ = false;
};

} // namespace coil::sim::detail
