#pragma once

#include <coil/core/config.hpp>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace coil {

/// The result of a Linux call: a value >= 0 or -errno. It converts to int, so code reads as if it
/// made the system call; errno is never used.
///
///     int n = co_await io::read(fd, buf);            // n < 0: -errno
///     auto n = (co_await io::read(fd, buf)).value(); // throws std::system_error
class io_result {
public:
    constexpr io_result() noexcept = default;
    /// Explicit, because `ok ? co_await op : 0` would be ambiguous otherwise.
    constexpr explicit io_result(int value) noexcept : value_(value) {}

    constexpr operator int() const noexcept { return value_; } // NOLINT: a result is an int

    /// Whether the call succeeded.
    [[nodiscard]] constexpr bool has_value() const noexcept { return value_ >= 0; }

    /// Returns the value, or throws std::system_error with the call's error code.
    int value() const {
        if (value_ < 0) {
            throw std::system_error(error());
        }
        return value_;
    }

    /// Returns the value, or `fallback` if the call failed.
    [[nodiscard]] constexpr int value_or(int fallback) const noexcept {
        return value_ < 0 ? fallback : value_;
    }

    /// The error in std::generic_category(); no error when the call succeeded.
    [[nodiscard]] std::error_code error() const noexcept {
        return value_ < 0 ? std::error_code(-value_, std::generic_category()) : std::error_code();
    }

    /// Produce readable compiler errors.
    void operator co_await() const
        COIL_DELETE_COPY("this call has completed already: its result is not awaited");
    template <std::size_t I> // auto [ec, n] = co_await io::read(fd, buf)
    friend int get(io_result) COIL_DELETE(
        "the result is one number: int n = co_await io::read(fd, buf), and -errno if n < 0");
    friend bool operator==(io_result, std::errc)
        COIL_DELETE("compare the error: r.error() == std::errc::timed_out, or r == -ETIMEDOUT");

private:
    int value_ = 0;
};

/// An io_result that only indicates success or failure. Ignoring one loses an error, so the
/// compiler warns; cast it to void to ignore it deliberately.
///
///     if (int r = co_await file.sync(); r < 0) ...
///     (co_await file.sync()).value();              // throws
class [[nodiscard("an error would be lost")]] checked_io_result : public io_result {
public:
    using io_result::io_result;
    constexpr explicit checked_io_result(io_result result) noexcept : io_result(result) {}
};

} // namespace coil

template <>
struct std::tuple_size<coil::io_result> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, coil::io_result> {
    using type = int;
};
