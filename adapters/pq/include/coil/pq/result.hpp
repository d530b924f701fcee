#pragma once

#include <coil/base/freed_by.hpp>
#include <coil/pq/error.hpp>
#include <coil/pq/value.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <libpq-fe.h>

namespace coil::pq {

class row;

/// The result of a statement: its rows, and the number of rows that the statement has changed.
///
///     auto people = co_await c.query("select id, name from people where age > $1", 17);
///     for (const pq::row& r : people) {
///         auto [id, name] = r.as<int, std::string_view>();
///     }
///
/// Move-only. Rows and fields refer to it and must not outlive it. A const result may be used by
/// several threads at the same time.
class result {
public:
    class iterator;

    result() = default;
    explicit result(::PGresult* owned) noexcept : result_(owned) {}

    /// The number of rows.
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(::PQntuples(get()));
    }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t columns() const noexcept {
        return static_cast<std::size_t>(::PQnfields(get()));
    }
    /// The name of a column. Throws std::out_of_range.
    [[nodiscard]] std::string_view column_name(std::size_t column) const;
    /// The index of the column with this name. Throws std::out_of_range whose message has the name.
    [[nodiscard]] std::size_t column(const std::string& name) const;
    /// The number of rows that an insert, update, delete, merge, select or copy has affected or
    /// returned.
    [[nodiscard]] std::uint64_t affected_rows() const noexcept;

    /// Throws std::out_of_range.
    [[nodiscard]] row operator[](std::size_t index) const;
    [[nodiscard]] iterator begin() const noexcept;
    [[nodiscard]] iterator end() const noexcept;

    /// The single field of a result of one row and one column; otherwise throws pq::error.
    template <class T>
    [[nodiscard]] T value_as() const;

    /// libpq's object, for its functions; null for a default-constructed result.
    [[nodiscard]] ::PGresult* get() const noexcept { return result_.get(); }

private:
    std::unique_ptr<::PGresult, coil::detail::freed_by<&::PQclear>> result_;
};

/// A field of a row.
class field {
public:
    field(::PGresult* of, int row, int column) noexcept : result_(of), row_(row), column_(column) {}

    [[nodiscard]] bool is_null() const noexcept {
        return ::PQgetisnull(result_, row_, column_) != 0;
    }
    /// PostgreSQL's text of the value; empty for NULL.
    [[nodiscard]] std::string_view text() const noexcept {
        return {::PQgetvalue(result_, row_, column_),
                static_cast<std::size_t>(::PQgetlength(result_, row_, column_))};
    }
    /// The value as a T for which pq::value is defined, or a std::optional of one: empty for NULL.
    /// Throws a pq::error that names the column if the text is not a T or the field is NULL.
    template <class T>
    [[nodiscard]] T as() const {
        if constexpr (detail::is_optional<T>) {
            return is_null() ? T{} : T{as<typename T::value_type>()};
        } else {
            static_assert(readable_value<T>, "this type has no pq::value: specialize it");
            if (is_null()) {
                fail("is NULL: read it as a std::optional");
            }
            try {
                return value<T>::from_text(text());
            } catch (const std::exception& e) {
                fail(e.what());
            }
        }
    }

private:
    [[noreturn]] void fail(const char* why) const;

    ::PGresult* result_;
    int row_;
    int column_;
};

/// A row of a result.
class row {
public:
    row(const result& of, std::size_t index) noexcept
        : result_(&of), index_(static_cast<int>(index)) {}

    [[nodiscard]] std::size_t size() const noexcept { return result_->columns(); }
    /// Throws std::out_of_range.
    [[nodiscard]] field operator[](std::size_t column) const {
        static_cast<void>(result_->column_name(column));
        return {result_->get(), index_, static_cast<int>(column)};
    }
    [[nodiscard]] field operator[](const std::string& column) const {
        return (*this)[result_->column(column)];
    }
    /// The first fields as a tuple, converted by field::as().
    template <class... T>
    [[nodiscard]] std::tuple<T...> as() const {
        return [this]<std::size_t... I>(std::index_sequence<I...> /*columns*/) {
            return std::tuple<T...>{(*this)[I].template as<T>()...};
        }(std::index_sequence_for<T...>{});
    }

private:
    const result* result_;
    int index_;
};

class result::iterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = row;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = row;

    iterator() = default;
    iterator(const result& of, std::size_t index) noexcept : result_(&of), index_(index) {}

    row operator*() const noexcept { return {*result_, index_}; }
    iterator& operator++() noexcept {
        ++index_;
        return *this;
    }
    iterator operator++(int) noexcept { return {*result_, index_++}; }
    bool operator==(const iterator&) const = default;

private:
    const result* result_ = nullptr;
    std::size_t index_ = 0;
};

inline result::iterator result::begin() const noexcept { return {*this, 0}; }
inline result::iterator result::end() const noexcept { return {*this, size()}; }

template <class T>
T result::value_as() const {
    if (size() != 1 || columns() != 1) {
        throw error("pq: a single value was expected: the result has " + std::to_string(size()) +
                    " rows and " + std::to_string(columns()) + " columns");
    }
    return field(get(), 0, 0).as<T>();
}

} // namespace coil::pq
