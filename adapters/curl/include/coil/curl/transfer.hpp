#pragma once

#include <coil/core/buffer.hpp>
#include <coil/core/io_result.hpp>
#include <coil/core/task.hpp>
#include <coil/curl/request.hpp>

#include <memory>
#include <string>

namespace coil::curl {

namespace detail {
class multi;
class easy;
} // namespace detail

/// A request whose response is read, and whose body may be written, while it is transferred.
///
///     auto t = client.start({.url = url});
///     if (co_await t.status() == 200) {
///         co_await copy(t, file);
///     }
///
/// It is a byte_stream. About 256 KiB in each direction are buffered: when they are full, libcurl
/// pauses the transfer and reads no more from the socket until the task has consumed them, so a
/// slow reader slows down the server.
///
///     auto t = client.start({.url = url, .method = "PUT", .upload = curl::unknown_size});
///     co_await copy(file, t);
///     co_await t.shutdown_write();
///     const curl::response r = co_await t.finish();
///
/// Errors: if the transfer has failed, awaits throw curl::error, but data that was received before
/// the failure can still be read. read_some() and write_some() return no negative results, except
/// -ETIMEDOUT under timeout().
///
/// Threading: that of its client. One task may read while another writes.
///
/// Cancellation: an await that is cancelled throws std::system_error (operation_canceled) and loses
/// nothing; the transfer continues. Destroying the transfer ends it immediately.
///
/// Lifetime: it must not be moved or destroyed during an await of its members.
class transfer {
public:
    transfer(transfer&&) noexcept;
    transfer& operator=(transfer&&) noexcept;
    ~transfer();

    /// Waits for the header of the final response, after redirects, and returns its status code.
    [[nodiscard]] task<long> status();
    /// The header fields; complete when status() has returned.
    [[nodiscard]] const header_list& headers() const noexcept;

    /// The next bytes of the body; 0 at its end.
    [[nodiscard]] task<io_result> read_some(mutable_buffer to);

    /// Waits until the buffer has space, then copies bytes of the request's body into it. Throws
    /// curl::error (CURLE_SEND_ERROR) if the transfer has ended.
    [[nodiscard]] task<io_result> write_some(const_buffer from);
    /// Ends the request's body.
    [[nodiscard]] task<io_result> shutdown_write();

    /// Reads the rest of the body, up to max_body, and returns the whole response.
    [[nodiscard]] task<response> finish();

    /// For curl_easy_getinfo().
    [[nodiscard]] ::CURL* native_handle() const noexcept;

private:
    friend class client;
    explicit transfer(std::unique_ptr<detail::easy> e) noexcept;

    std::unique_ptr<detail::easy> easy_;
};

} // namespace coil::curl
