#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace coil::pq {

/// Converts a C++ type to and from PostgreSQL's text format. Specialize it for your own types, so
/// that they can be parameters of a query and be read from a row:
///
///     template <>
///     struct coil::pq::value<money> {
///         static std::string to_text(const money& m) { return m.to_string(); }
///         static money from_text(std::string_view text) { return money::parse(text); }
///     };
///
/// from_text() may throw; the caller gets a pq::error that names the column. Provided: bool, the
/// integers, the floating-point numbers, std::string, std::string_view (which refers to the result)
/// and, for bytea, std::vector<std::byte>. NULL is handled by std::optional; a specialization never
/// sees it.
template <class T>
struct value;

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

} // namespace detail

/// A type that can be a parameter.
template <class T>
concept writable_value = requires(const T& v) {
    { value<T>::to_text(v) } -> std::convertible_to<std::string>;
};
/// A type that can be read from a field.
template <class T>
concept readable_value = requires(std::string_view text) {
    { value<T>::from_text(text) } -> std::convertible_to<T>;
};

template <>
struct value<bool> {
    static std::string to_text(bool v) { return v ? "t" : "f"; }
    static bool from_text(std::string_view text) {
        if (text != "t" && text != "f") {
            throw std::invalid_argument("not a boolean");
        }
        return text == "t";
    }
};

template <class T>
    requires(std::integral<T> && !std::same_as<T, char>) || std::floating_point<T>
struct value<T> {
    static std::string to_text(T v) {
        std::array<char, 64> digits; // NOLINT(*-member-init): filled by to_chars
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr;
        return {digits.data(), end};
    }
    static T from_text(std::string_view text) {
        T v{};
        const char* const last = text.data() + text.size();
        const auto [end, failure] = std::from_chars(text.data(), last, v);
        if (failure == std::errc::result_out_of_range) {
            throw std::out_of_range("out of range");
        }
        if (failure != std::errc{} || end != last) {
            throw std::invalid_argument("not a number of this type");
        }
        return v;
    }
};

template <>
struct value<std::string> {
    static std::string to_text(const std::string& v) { return v; }
    static std::string from_text(std::string_view text) { return std::string(text); }
};
template <>
struct value<std::string_view> {
    static std::string to_text(std::string_view v) { return std::string(v); }
    static std::string_view from_text(std::string_view text) { return text; }
};

/// bytea, in the hexadecimal form.
template <>
struct value<std::vector<std::byte>> {
    static std::string to_text(const std::vector<std::byte>& v) {
        constexpr std::string_view digits = "0123456789abcdef";
        std::string text = "\\x";
        for (const std::byte b : v) {
            text += digits[std::to_integer<unsigned>(b) >> 4U];
            text += digits[std::to_integer<unsigned>(b) & 15U];
        }
        return text;
    }
    static std::vector<std::byte> from_text(std::string_view text) {
        if (!text.starts_with("\\x") || text.size() % 2 != 0) {
            throw std::invalid_argument("not a bytea in hexadecimal form");
        }
        std::vector<std::byte> bytes;
        for (std::size_t i = 2; i < text.size(); i += 2) {
            std::uint8_t b = 0;
            const char* const last = text.data() + i + 2;
            if (std::from_chars(text.data() + i, last, b, 16).ptr != last) {
                throw std::invalid_argument("not a bytea in hexadecimal form");
            }
            bytes.push_back(std::byte{b});
        }
        return bytes;
    }
};

} // namespace coil::pq
