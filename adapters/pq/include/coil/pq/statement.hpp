#pragma once

#include <string>
#include <utility>

namespace coil::pq {

/// A prepared statement, returned by connection::prepare(). Copyable. It can be used only on the
/// connection that prepared it.
class statement {
public:
    statement(std::string name, std::string sql) : name_(std::move(name)), sql_(std::move(sql)) {}

    /// Its name in the server, for DEALLOCATE.
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& sql() const noexcept { return sql_; }

private:
    std::string name_;
    std::string sql_;
};

} // namespace coil::pq
