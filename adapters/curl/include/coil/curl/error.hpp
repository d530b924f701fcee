#pragma once

#include <string>
#include <system_error>

#include <curl/curl.h>

namespace coil::curl {

/// The category of CURLcode; its messages are those of curl_easy_strerror().
/// CURLE_OPERATION_TIMEDOUT equals std::errc::timed_out, CURLE_COULDNT_CONNECT
/// std::errc::connection_refused, CURLE_OUT_OF_MEMORY std::errc::not_enough_memory.
[[nodiscard]] const std::error_category& category() noexcept;

/// A transfer failed. what() names the method and the URL without its credentials, and describes
/// the failure as libcurl does. A status such as 404 is not an error.
class error : public std::system_error {
public:
    error(::CURLcode code, const std::string& what)
        : std::system_error(static_cast<int>(code), category(), what) {}

    [[nodiscard]] ::CURLcode curl_code() const noexcept {
        return static_cast<::CURLcode>(code().value());
    }
};

} // namespace coil::curl
