#pragma once

#include <coil/core/task.hpp>
#include <coil/pq/detail/session.hpp>

#include <cstddef>
#include <string_view>

namespace coil::pq {

/// The data of a `copy ... from stdin`, see connection::copy_in(). Used by the function that it was
/// passed to, one call at a time.
class copy_writer {
public:
    explicit copy_writer(detail::session& s) noexcept : session_(s) {}
    copy_writer(const copy_writer&) = delete;
    copy_writer& operator=(const copy_writer&) = delete;

    /// Sends data in the format of the statement; it need not end at the end of a row, and must
    /// be valid until the await returns. Small pieces are collected; a call waits if the server
    /// reads more slowly than the data is written. Throws connection_error, or std::system_error
    /// with std::errc::operation_canceled. Errors in the data are reported when the copy ends.
    [[nodiscard]] task<> write(std::string_view data);

private:
    static constexpr std::size_t most_unsent = 65'536;

    detail::session& session_;
    std::size_t unsent_ = 0;
};

} // namespace coil::pq
