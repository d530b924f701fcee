#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace coil::sqlite {

/// A value of type BLOB.
using blob = std::vector<std::byte>;

/// A value of one of SQLite's five types; std::monostate is NULL.
using value = std::variant<std::monostate, std::int64_t, double, std::string, blob>;

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Converts a parameter.
template <class T>
value to_value(const T& v) {
    if constexpr (std::is_null_pointer_v<T> || std::same_as<T, std::nullopt_t>) {
        return {};
    } else if constexpr (is_optional<T>) {
        return v ? to_value(*v) : value{};
    } else if constexpr (std::same_as<T, bool>) {
        return std::int64_t{v};
    } else if constexpr (std::integral<T>) {
        if (!std::in_range<std::int64_t>(v)) {
            throw std::out_of_range("sqlite: an integer parameter exceeds 64 bits with sign");
        }
        return static_cast<std::int64_t>(v);
    } else if constexpr (std::floating_point<T>) {
        return static_cast<double>(v);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
        return std::string(std::string_view(v));
    } else {
        static_assert(std::convertible_to<const T&, value>, "SQLite has no such type");
        return v;
    }
}

} // namespace detail

} // namespace coil::sqlite
