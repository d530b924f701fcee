#include "error_queue.hpp"

#include <system_error>

namespace coil::tls::detail {

std::string reason_of(unsigned long error) {
    if (const char* const reason = ERR_reason_error_string(error)) {
        return reason;
    }
    char text[256];
    ERR_error_string_n(error, text, sizeof text);
    return text;
}

void throw_failure(const std::string& what) {
    const unsigned long error = ERR_peek_error();
    const std::string reason = error == 0 ? std::string("unknown reason") : reason_of(error);
    const int code = ERR_SYSTEM_ERROR(error) ? ERR_GET_REASON(error) : EINVAL;
    throw std::system_error(code, std::generic_category(), "coil: TLS: " + what + ": " + reason);
}

} // namespace coil::tls::detail
