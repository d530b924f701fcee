#include <coil/pq/result.hpp>

#include <charconv>
#include <stdexcept>

namespace coil::pq {

std::string_view result::column_name(std::size_t column) const {
    if (column >= columns()) {
        throw std::out_of_range("pq: the result has no column " + std::to_string(column));
    }
    return ::PQfname(get(), static_cast<int>(column));
}

std::size_t result::column(const std::string& name) const {
    // PQfnumber() folds the case of a name that is not quoted.
    for (std::size_t i = 0; i < columns(); ++i) {
        if (column_name(i) == name) {
            return i;
        }
    }
    throw std::out_of_range("pq: the result has no column \"" + name + '"');
}

std::uint64_t result::affected_rows() const noexcept {
    if (get() == nullptr) {
        return 0;
    }
    const std::string_view text = ::PQcmdTuples(get());
    std::uint64_t rows = 0;
    std::from_chars(text.data(), text.data() + text.size(), rows);
    return rows;
}

row result::operator[](std::size_t index) const {
    if (index >= size()) {
        throw std::out_of_range("pq: the result has no row " + std::to_string(index));
    }
    return {*this, index};
}

void field::fail(const char* why) const {
    const char* const name = ::PQfname(result_, column_);
    throw error("pq: column \"" + std::string(name) + "\", row " + std::to_string(row_) + ": " +
                why + (is_null() ? "" : ": '" + std::string(text().substr(0, 64)) + "'"));
}

} // namespace coil::pq
