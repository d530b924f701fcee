#pragma once

#include <coil/curl/header_list.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <curl/curl.h>

namespace coil::curl {

/// The parameters of a request. Options that are not here can be set by `configure`, which is
/// called with the easy handle after all other options.
///
///     curl::request r{.url = "https://example.org/items", .method = "POST", .body = json};
///     r.headers.add("Content-Type", "application/json");
struct request {
    std::string url{};
    std::string method{}; ///< empty: GET, or POST if there is a body, or PUT if `upload` is set
    header_list headers{};
    std::string body{}; ///< sent if it is not empty
    /// If set, the request's body is written to the transfer, and `body` is ignored. The value is
    /// its size, or unknown_size for a chunked body. Such a body cannot be sent twice: a redirect
    /// that needs a second upload fails with CURLE_SEND_FAIL_REWIND.
    std::optional<std::int64_t> upload{};
    /// The maximum size of a response's body that perform() or finish() collects; a longer body is
    /// an error.
    std::size_t max_body = 64UL * 1024 * 1024;
    int max_redirects = 10; ///< followed for HTTP and HTTPS; 0: none
    std::chrono::milliseconds connect_timeout{30'000};
    std::chrono::milliseconds timeout{0}; ///< the limit of the whole transfer; 0: none
    std::function<void(::CURL*)> configure{};
};

/// For request::upload: the size is not known in advance.
inline constexpr std::int64_t unknown_size = -1;

/// The response to a request.
struct response {
    long status = 0; ///< 200, 404, ...
    header_list headers{};
    std::string body{};
    std::string url{}; ///< the final URL, after redirects
};

} // namespace coil::curl
