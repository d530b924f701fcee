#pragma once

#include <coil/sqlite/error.hpp>
#include <coil/sqlite/value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace coil::sqlite {

/// A row of a result.
class row {
public:
    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    /// Throws std::out_of_range.
    [[nodiscard]] const value& operator[](std::size_t column) const { return values_.at(column); }
    /// The value of a column as an integer type, bool, a floating-point type (integers convert),
    /// std::string, std::string_view (which refers to the row), blob, or a std::optional of one:
    /// empty for NULL. Throws error if it is of another type, NULL, or out of range.
    template <class T>
    [[nodiscard]] T get(std::size_t column) const;
    /// The first columns as a tuple.
    template <class... T>
    [[nodiscard]] std::tuple<T...> as() const {
        return [this]<std::size_t... I>(std::index_sequence<I...> /*columns*/) {
            return std::tuple<T...>{this->template get<T>(I)...};
        }(std::index_sequence_for<T...>{});
    }

private:
    friend class connection;

    std::vector<value> values_;
};

template <class T>
T row::get(std::size_t column) const {
    const value& v = (*this)[column];
    if constexpr (detail::is_optional<T>) {
        return std::holds_alternative<std::monostate>(v) ? T{}
                                                         : T{get<typename T::value_type>(column)};
    } else if constexpr (std::same_as<T, bool>) {
        return get<std::int64_t>(column) != 0;
    } else if constexpr (std::integral<T>) {
        if (const auto* number = std::get_if<std::int64_t>(&v);
            number != nullptr && std::in_range<T>(*number)) {
            return static_cast<T>(*number);
        }
    } else if constexpr (std::floating_point<T>) {
        if (const auto* number = std::get_if<double>(&v)) {
            return static_cast<T>(*number);
        }
        if (const auto* number = std::get_if<std::int64_t>(&v)) {
            return static_cast<T>(*number);
        }
    } else if constexpr (std::same_as<T, std::string_view>) {
        if (const auto* text = std::get_if<std::string>(&v)) {
            return *text;
        }
    } else {
        if (const auto* same = std::get_if<T>(&v)) {
            return *same;
        }
    }
    if constexpr (!detail::is_optional<T> && !std::same_as<T, bool>) {
        throw error("sqlite: column " + std::to_string(column) +
                    " is NULL, of another type, or out of range");
    }
}

} // namespace coil::sqlite
