#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

namespace coil::hiredis {

/// The types of arguments that call() takes: text (any bytes, including zeros), integers,
/// floating-point numbers, and ranges of these, each element of which is one argument.
template <class T>
concept argument = std::convertible_to<const T&, std::string_view> ||
                   (std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>) ||
                   std::ranges::sized_range<const T>;

namespace detail {

/// Formats a command with hiredis' printf-like format. Throws std::invalid_argument.
[[nodiscard]] std::string format_command(const char* format, ...);

void append_size(std::string& out, char mark, std::size_t value);
void append_text(std::string& out, std::string_view text);

template <class T>
concept textual = std::convertible_to<const T&, std::string_view>;

template <class T>
[[nodiscard]] std::size_t count_arguments(const T& value) noexcept {
    if constexpr (!textual<T> && std::ranges::range<const T>) {
        return static_cast<std::size_t>(std::ranges::size(value));
    } else {
        return 1;
    }
}

template <class T>
void append_argument(std::string& out, const T& value) {
    if constexpr (textual<T>) {
        append_text(out, value);
    } else if constexpr (std::ranges::range<const T>) {
        for (const auto& element : value) {
            append_argument(out, element);
        }
    } else {
        std::array<char, 64> text; // NOLINT(*-member-init): filled by to_chars
        const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
        append_text(out, {text.data(), end.ptr});
    }
}

/// Appends the command in Redis' protocol.
template <argument... Args>
void append_command(std::string& out, const Args&... args) {
    append_size(out, '*', (count_arguments(args) + ...));
    (append_argument(out, args), ...);
}

template <argument... Args>
[[nodiscard]] std::string encode(const Args&... args) {
    std::string out;
    append_command(out, args...);
    return out;
}

template <class T>
concept printable = std::is_arithmetic_v<T> || std::is_pointer_v<T>;

template <printable... Args>
[[nodiscard]] std::string format(const char* command, Args... args) {
    return format_command(command, args...); // NOLINT(*-vararg): it is hiredis' interface
}

} // namespace detail

} // namespace coil::hiredis
