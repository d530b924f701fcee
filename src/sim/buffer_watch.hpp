#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/uio.h>

namespace coil::sim::detail {

/// Watches the memory of one call while the kernel owns it: detects writes to it, and fills receive
/// buffers with a pattern, so that reading them early yields no valid data.
///
/// Of large memory only pieces are watched: the beginning, the end, and some in between, selected
/// by `salt`. With AddressSanitizer all receive memory is poisoned, so that any access is reported
/// immediately.
class buffer_watch {
public:
    buffer_watch() noexcept = default;
    buffer_watch(const buffer_watch&) = delete;
    buffer_watch& operator=(const buffer_watch&) = delete;

    /// `filled`: the kernel writes to the memory; otherwise it reads it.
    void begin(std::span<const ::iovec> memory, bool filled, std::uint64_t salt);
    [[nodiscard]] bool is_on() const noexcept { return !pieces_.empty(); }
    /// Restores the memory and returns the violation: null, "was written to" or, with
    /// AddressSanitizer, "was freed". Only while is_on().
    [[nodiscard]] const char* end() noexcept;

private:
    using piece = std::span<std::byte>;

    void choose(std::byte* data, std::size_t size, std::uint64_t salt);
    [[nodiscard]] std::uint64_t sum() const noexcept;
    [[nodiscard]] bool is_freed() const noexcept;
    void poison(bool on) const noexcept;

    std::vector<piece> pieces_;
    std::vector<piece> poisoned_;
    std::vector<std::byte> kept_; // the content of the pieces before they were overwritten
    std::uint64_t sum_ = 0;
    bool filled_ = false;
};

} // namespace coil::sim::detail
