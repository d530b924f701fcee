#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

/// The targets of the fuzzer. Each is a function that takes any bytes (a corpus file, or what
/// libFuzzer made of one) and throws fuzz::broken if the parser under test breaks a promise.
namespace fuzz {

/// A promise that does not hold.
class broken : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

inline void require(bool holds, const char* promise) {
    if (!holds) {
        throw broken(promise);
    }
}

using bytes = std::span<const std::uint8_t>;

/// Takes decisions and data from the front of an input. An exhausted input yields zeros.
class reader {
public:
    explicit reader(bytes input) noexcept : rest_(input) {}

    [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
    std::uint8_t byte() noexcept {
        if (rest_.empty()) {
            return 0;
        }
        const std::uint8_t value = rest_.front();
        rest_ = rest_.subspan(1);
        return value;
    }
    /// Takes at most `size` bytes.
    std::string_view text(std::size_t size) noexcept {
        const bytes taken = rest_.first(std::min(size, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }
    /// Takes all remaining bytes.
    std::string_view text() noexcept { return text(rest_.size()); }

private:
    bytes rest_;
};

} // namespace fuzz
