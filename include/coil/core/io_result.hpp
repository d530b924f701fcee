#pragma once

#include <cerrno>
#include <system_error>

namespace coil {

/// What a Linux call gave: a value ≥ 0, or −errno. It is an int wherever an int is wanted, so code
/// reads as with the system call, except that errno is never involved.
///
///     int n = co_await io::read(fd, buf);            // n < 0: −errno
///     auto n = (co_await io::read(fd, buf)).value(); // throws std::system_error
class io_result {
public:
    constexpr io_result() noexcept = default;
    /// Explicit, or `ok ? co_await op : 0` would be ambiguous.
    constexpr explicit io_result(int value) noexcept : value_(value) {}

    constexpr operator int() const noexcept { return value_; } // NOLINT: a result is an int

    /// Whether the call succeeded.
    [[nodiscard]] constexpr bool has_value() const noexcept { return value_ >= 0; }

    /// The value, or std::system_error with the call's errno.
    int value() const {
        if (value_ < 0) {
            throw std::system_error(error());
        }
        return value_;
    }

    /// The value, or `fallback` when the call failed.
    [[nodiscard]] constexpr int value_or(int fallback) const noexcept {
        return value_ < 0 ? fallback : value_;
    }

    /// The error in std::generic_category(); no error when the call succeeded.
    [[nodiscard]] std::error_code error() const noexcept {
        return value_ < 0 ? std::error_code(-value_, std::generic_category()) : std::error_code();
    }

private:
    int value_ = 0;
};

/// An io_result whose only content is success or failure: an ignored one is a lost error, so the
/// compiler warns of it. static_cast<void>() says that it does not matter.
///
///     if (int r = co_await file.sync(); r < 0) ...
///     (co_await file.sync()).value();              // throws
class [[nodiscard("an error would be lost")]] checked_io_result : public io_result {
public:
    using io_result::io_result;
    constexpr explicit checked_io_result(io_result result) noexcept : io_result(result) {}
};

} // namespace coil
