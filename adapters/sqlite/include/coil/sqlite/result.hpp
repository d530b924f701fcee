#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace coil::sqlite {

/// A statement has failed, or a value is not of the requested type. what() names the database, the
/// statement and the cause. A task that was asked to stop gets std::system_error with
/// std::errc::operation_canceled instead.
class error : public std::runtime_error {
public:
    explicit error(const std::string& what, int code = 0) : std::runtime_error(what), code_(code) {}

    /// SQLite's extended result code, such as SQLITE_CONSTRAINT_UNIQUE; 0 if SQLite has not
    /// reported the error.
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

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
        return convert<T...>(std::index_sequence_for<T...>{});
    }

private:
    friend class connection;

    template <class... T, std::size_t... I>
    [[nodiscard]] std::tuple<T...> convert(std::index_sequence<I...> /*columns*/) const {
        return std::tuple<T...>{get<T>(I)...};
    }

    std::vector<value> values_;
};

/// The rows of a statement, copied from SQLite. A value type.
class result {
public:
    [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
    [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
    [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
    /// Throws std::out_of_range.
    [[nodiscard]] const row& operator[](std::size_t index) const { return rows_.at(index); }
    [[nodiscard]] auto begin() const noexcept { return rows_.begin(); }
    [[nodiscard]] auto end() const noexcept { return rows_.end(); }
    /// The rows that an insert, update or delete has changed.
    [[nodiscard]] std::int64_t changes() const noexcept { return changes_; }
    [[nodiscard]] std::int64_t last_insert_rowid() const noexcept { return rowid_; }
    /// The single value of a result of one row and one column; otherwise throws error.
    template <class T>
    [[nodiscard]] T value_as() const {
        if (size() != 1 || columns_.size() != 1) {
            throw error("sqlite: a single value was expected: the result has " +
                        std::to_string(size()) + " rows and " + std::to_string(columns_.size()) +
                        " columns");
        }
        return rows_[0].get<T>(0);
    }

private:
    friend class connection;

    std::vector<std::string> columns_;
    std::vector<row> rows_;
    std::int64_t changes_ = 0;
    std::int64_t rowid_ = 0;
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
