#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace coil::pq {

/// A statement has failed, or a value cannot be converted. what() names the server, the statement
/// and the cause: `pq: 127.0.0.1:5432/shop: ERROR 42P01: relation "x" does not exist, in "select *
/// from x"`. The connection can still be used, unless the error is a connection_error.
///
/// A task that was asked to stop gets std::system_error with std::errc::operation_canceled instead.
class error : public std::runtime_error {
public:
    explicit error(const std::string& what, std::string sqlstate = {}, std::string detail = {})
        : std::runtime_error(what), sqlstate_(std::move(sqlstate)), detail_(std::move(detail)) {}

    /// The five characters of PostgreSQL's error code, such as "23505" (unique_violation); empty if
    /// the server has not reported the error.
    [[nodiscard]] std::string_view sqlstate() const noexcept { return sqlstate_; }
    /// The server's explanation, such as `Key (id)=(1) already exists.`; may be empty.
    [[nodiscard]] std::string_view detail() const noexcept { return detail_; }

private:
    std::string sqlstate_;
    std::string detail_;
};

/// The connection could not be established, or is broken. It is unknown whether a statement that
/// was in progress has had an effect. The connection has become unusable.
class connection_error : public error {
public:
    using error::error;
};

} // namespace coil::pq
