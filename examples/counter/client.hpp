#pragma once

#include "protocol.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstdint>
#include <system_error>

namespace counter {

namespace detail {

inline void check(int result, int wanted, const char* what) {
    if (result != wanted) {
        throw std::system_error(result < 0 ? -result : ECONNRESET, std::generic_category(), what);
    }
}

inline coil::task<std::int64_t> ask_once(coil::net::inet_address server, request asked) {
    coil::net::socket s = coil::net::socket::create_tcp(server.family());
    check(co_await s.connect(server), 0, "connect");
    check(co_await s.send_all({reinterpret_cast<const char*>(&asked), sizeof asked}), sizeof asked,
          "send");
    reply answer{};
    check(co_await s.recv_all({reinterpret_cast<char*>(&answer), sizeof answer}), sizeof answer,
          "recv");
    co_return answer.sum;
}

} // namespace detail

/// Asks until there is an answer, however often the server or the network breaks down meanwhile:
/// the sum after the request. Ends by an exception only when it is cancelled.
inline coil::task<std::int64_t> ask(coil::net::inet_address server, request asked) {
    using namespace std::chrono_literals;
    while (true) {
        try {
            const std::int64_t sum = co_await coil::timeout(detail::ask_once(server, asked), 500ms);
            co_return sum;
        } catch (const std::system_error& e) {
            if (e.code() == std::errc::operation_canceled) {
                throw;
            }
        }
        co_await coil::sleep_for(50ms);
    }
}

} // namespace counter
