#pragma once

// OpenSSL has one error queue per thread. Every call starts with an empty queue, so that the error
// of an earlier call is not reported as its own.

#include <string>

#include <openssl/err.h>

namespace coil::tls::detail {

/// Clears the queue now and at the end of the scope.
class error_scope {
public:
    error_scope() noexcept { clear(); }
    error_scope(const error_scope&) = delete;
    error_scope& operator=(const error_scope&) = delete;
    ~error_scope() { clear(); }

private:
    static void clear() noexcept {
        if (ERR_peek_error() != 0) { // ERR_clear_error() resets all entries, also unused ones
            ERR_clear_error();
        }
    }
};

/// The reason of an error, such as "no start line".
class reason_of {
public:
    explicit reason_of(unsigned long error) noexcept;
    reason_of(const reason_of&) = delete;
    reason_of& operator=(const reason_of&) = delete;
    [[nodiscard]] const char* text() const noexcept { return text_; }

private:
    const char* text_;
    char number_[256]; // for an error without a text
};

/// Throws std::system_error with `what` and the reason of the oldest error in the queue.
[[noreturn]] void throw_failure(const std::string& what);

} // namespace coil::tls::detail
