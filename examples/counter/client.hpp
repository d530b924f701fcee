#pragma once

#include "protocol.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <system_error>

namespace counter {

namespace detail {

/// Returns nullopt if the server could not be reached or did not answer; the request may still have
/// been counted.
inline coil::task<std::optional<std::int64_t>> ask_once(coil::net::inet_address server,
                                                        request asked) {
    coil::net::socket s = coil::net::socket::create_tcp(server.family());
    reply answer{};
    if (co_await s.connect(server) < 0 ||
        co_await s.send_all({reinterpret_cast<const char*>(&asked), sizeof asked}) < 0 ||
        co_await s.recv_all({reinterpret_cast<char*>(&answer), sizeof answer}) !=
            static_cast<int>(sizeof answer)) {
        co_return std::nullopt;
    }
    co_return answer.sum;
}

} // namespace detail

/// Repeats the request until it is answered, also after failures of the server and the network.
/// Returns the sum after the request.
inline coil::task<std::int64_t> ask(coil::net::inet_address server, request asked) {
    using namespace std::chrono_literals;
    while (true) {
        try {
            const auto sum = co_await coil::timeout(detail::ask_once(server, asked), 500ms);
            if (sum) {
                co_return *sum;
            }
        } catch (const std::system_error& e) {
            if (e.code() == std::errc::operation_canceled) {
                throw;
            }
        }
        (co_await coil::sleep_for(50ms)).value(); // throws if the task was asked to stop
    }
}

} // namespace counter
