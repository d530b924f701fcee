#pragma once

// OpenSSL's queue of errors, which belongs to the thread: every call starts with an empty queue, so
// that it is not mistaken for the failure of an earlier one.

#include <string>

#include <openssl/err.h>

namespace coil::tls::detail {

/// Clears the queue now and at the end of the scope.
class error_scope {
public:
    error_scope() noexcept { ERR_clear_error(); }
    error_scope(const error_scope&) = delete;
    error_scope& operator=(const error_scope&) = delete;
    ~error_scope() { ERR_clear_error(); }
};

/// The reason of an error, such as "no start line".
std::string reason_of(unsigned long error);

/// Throws std::system_error with `what` and the reason of the oldest error in the queue.
[[noreturn]] void throw_failure(const std::string& what);

} // namespace coil::tls::detail
