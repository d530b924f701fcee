#include "error_queue.hpp"

#include <system_error>

namespace coil::tls::detail {

// NOLINTNEXTLINE(*-member-init): number_ is written if it is used
reason_of::reason_of(unsigned long error) noexcept
    : text_(error != 0 ? ERR_reason_error_string(error) : "unknown reason") {
    if (text_ == nullptr) {
        ERR_error_string_n(error, number_, sizeof number_);
        text_ = number_;
    }
}

void throw_failure(const std::string& what) {
    const unsigned long error = ERR_peek_error();
    const int code = ERR_SYSTEM_ERROR(error) ? ERR_GET_REASON(error) : EINVAL;
    throw std::system_error(code, std::generic_category(),
                            "coil: TLS: " + what + ": " + reason_of(error).text());
}

} // namespace coil::tls::detail
