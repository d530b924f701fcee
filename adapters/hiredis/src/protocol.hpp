#pragma once

#include <coil/base/freed_by.hpp>
#include <coil/hiredis/connection.hpp>
#include <coil/net/socket.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include <hiredis/hiredis.h>

namespace coil::hiredis::detail {

/// hiredis' incremental parser.
class parser {
public:
    parser() : reader_(::redisReaderCreate()) {
        if (!reader_) {
            throw std::bad_alloc();
        }
    }

    void feed(std::span<const char> bytes) noexcept {
        ::redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
    }
    /// Whether there was a complete reply. Throws hiredis::error for a violation of the protocol.
    [[nodiscard]] bool next(reply& out);

private:
    std::unique_ptr<::redisReader, coil::detail::freed_by<&::redisReaderFree>> reader_;
};

/// A connected socket. Throws connection_error.
[[nodiscard]] task<net::socket> open_socket(const options& to);

/// Removes the first command from a sequence of encoded commands and returns its first word.
[[nodiscard]] std::string_view take_verb(std::string_view& encoded) noexcept;

[[nodiscard]] std::string describe(const std::string& server, std::string_view verb,
                                   std::string_view what);

} // namespace coil::hiredis::detail
