#pragma once

#include <coil/core/task.hpp>
#include <coil/curl/request.hpp>
#include <coil/curl/transfer.hpp>

#include <memory>
#include <string>

namespace coil::curl {

/// Limits of a client, as in libcurl; 0: none.
struct client_options {
    long max_connections = 0;          ///< open at the same time; further transfers wait
    long max_connections_per_host = 0; ///< the same for each host
    long max_idle_connections = 0;     ///< kept for later requests; 0: four per transfer
};

/// A client for HTTP and HTTPS. It owns a multi handle of libcurl, through which its transfers
/// share connections, name look-ups and TLS sessions, and runs a task that drives it. One client
/// per context is enough.
///
///     curl::client client;
///     const curl::response page = co_await client.get("https://example.org/");
///     if (page.status == 200) use(page.body);
///
/// Errors: curl::error, a std::system_error; a status such as 404 is not an error. libcurl verifies
/// certificates and host names.
///
/// Threading: one context, on which it is also destroyed.
///
/// Cancellation: the transfer is removed from the multi handle immediately, and its connection is
/// closed unless other transfers share it. Awaits throw std::system_error with operation_canceled,
/// or timed_out under timeout(). The frame of an awaiting task may be destroyed at any time.
///
/// Lifetime: destroying the client ends its transfers: their awaits throw curl::error with
/// CURLE_ABORTED_BY_CALLBACK.
class client {
public:
    explicit client(const client_options& options = {});
    client(client&&) noexcept;
    client& operator=(client&&) noexcept;
    ~client();

    /// Requests a URL and returns the whole response.
    [[nodiscard]] task<response> get(std::string url);
    /// The same for any request. For one with `upload` use start().
    [[nodiscard]] task<response> perform(request what);

    /// Starts a transfer whose body is read, or written, piece by piece.
    [[nodiscard]] transfer start(request what);

    /// The number of transfers that have not ended.
    [[nodiscard]] std::size_t active() const noexcept;

private:
    std::shared_ptr<detail::multi> multi_;
};

} // namespace coil::curl
