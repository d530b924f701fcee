#pragma once

#include <coil/sqlite/error.hpp>
#include <coil/sqlite/row.hpp>
#include <coil/sqlite/value.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coil::sqlite {

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
    /// The number of rows that an insert, update or delete has changed.
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

} // namespace coil::sqlite
