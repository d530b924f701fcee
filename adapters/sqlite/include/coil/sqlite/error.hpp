#pragma once

#include <stdexcept>
#include <string>

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

} // namespace coil::sqlite
