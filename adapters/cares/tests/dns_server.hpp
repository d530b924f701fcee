#pragma once

#include "support/expect.hpp"
#include "support/run.hpp"

#include <coil/cares.hpp>
#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cares_test {

using namespace coil;
using namespace std::chrono_literals;
using namespace adapter_test;

/// A DNS server on a thread of its own, on one port over UDP and TCP. The first label of the name
/// says what to answer:
///
///     both       192.0.2.1 and 2001:db8::1        silent    nothing
///     four       192.0.2.4 only                   refused   REFUSED
///     many       60 addresses; truncated over UDP failed    SERVFAIL
///     late       after 50 ms                      garbage   a datagram that is not an answer
///     local      127.0.0.1                        empty     no address
///     retry      ignores the first two queries    others    NXDOMAIN
class dns_server {
public:
    dns_server() {
        std::promise<std::uint16_t> port;
        auto known = port.get_future();
        context_.co_spawn(serve(std::move(port)));
        context_.start();
        port_ = known.get();
    }
    dns_server(const dns_server&) = delete;
    dns_server& operator=(const dns_server&) = delete;
    ~dns_server() {
        context_.stop();
        context_.join();
    }

    [[nodiscard]] net::inet_address address() const { return {"127.0.0.1", port_}; }
    [[nodiscard]] int datagrams() const noexcept { return datagrams_.load(); }
    [[nodiscard]] int connections() const noexcept { return connections_.load(); }

private:
    struct question {
        std::string label;   // the first one
        std::uint16_t type;  // 1: A, 28: AAAA
        std::string encoded; // name, type and class
        std::string id;
    };

    task<> serve(std::promise<std::uint16_t> port) {
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        const net::inet_address here = acceptor.local_address();
        net::socket udp = net::socket::create_udp();
        if (udp.bind(here) < 0) {
            throw std::runtime_error("the UDP port is in use");
        }
        port.set_value(here.port());
        supervisor tasks;
        co_await tasks.spawn(serve_udp(udp, tasks));
        while (net::socket peer = co_await acceptor.accept()) {
            ++connections_;
            co_await tasks.spawn(serve_tcp(std::move(peer)));
        }
    }

    task<> serve_udp(net::socket& udp, supervisor& tasks) {
        std::array<char, 512> buffer; // NOLINT(*-member-init): a receive buffer
        for (;;) {
            const auto [n, peer] = co_await udp.recv_from(buffer);
            if (n <= 0) {
                co_return;
            }
            ++datagrams_;
            const auto asked = parse({buffer.data(), static_cast<std::size_t>(int(n))});
            if (asked) {
                co_await tasks.spawn(answer_datagram(udp, peer, *asked));
            }
        }
    }
    task<> answer_datagram(net::socket& udp, net::endpoint peer, question q) {
        if (q.label == "silent" || (q.label == "retry" && ++retries_ <= 2)) {
            co_return;
        }
        if (q.label == "late") {
            co_await sleep_for(50ms);
        }
        const std::string reply = q.label == "garbage" ? "garbage" : answer(q, q.label == "many");
        co_await udp.send_to(reply, peer);
    }
    task<> serve_tcp(net::socket peer) {
        for (;;) {
            std::array<unsigned char, 2> size{};
            if (co_await peer.recv_all(size) != 2) {
                co_return;
            }
            std::string text(static_cast<std::size_t>(size[0] << 8 | size[1]), '\0');
            if (co_await peer.recv_all(text) <= 0) {
                co_return;
            }
            const auto asked = parse(text);
            if (!asked) {
                co_return;
            }
            const std::string reply = answer(*asked, false);
            co_await peer.send_all(number(reply.size()) + reply);
        }
    }

    static std::optional<question> parse(std::string_view message) {
        const std::size_t header = 12;
        std::size_t at = header;
        while (at < message.size() && message[at] != 0) {
            at += static_cast<unsigned char>(message[at]) + 1U;
        }
        if (at + 5 > message.size() || at == header) {
            return std::nullopt;
        }
        const auto length = static_cast<unsigned char>(message[header]);
        return question{std::string(message.substr(header + 1, length)),
                        static_cast<std::uint16_t>(static_cast<unsigned char>(message[at + 2])),
                        std::string(message.substr(header, at + 5 - header)),
                        std::string(message.substr(0, 2))};
    }

    static std::string number(std::size_t n) {
        return {static_cast<char>(n >> 8 & 0xff), static_cast<char>(n & 0xff)};
    }
    /// The addresses in network order.
    static std::vector<std::string> addresses(const question& q) {
        std::vector<std::string> found;
        const bool is_four = q.type == 1;
        if (q.label == "many" && is_four) {
            for (char i = 1; i <= 60; ++i) {
                found.push_back({'\xc0', 0, 2, i});
            }
        } else if (q.label == "local" && is_four) {
            found.push_back({127, 0, 0, 1});
        } else if (q.label == "four" && is_four) {
            found.push_back({'\xc0', 0, 2, 4});
        } else if (q.label == "both" || q.label == "late" || q.label == "retry") {
            found.push_back(is_four ? std::string{'\xc0', 0, 2, 1}
                                    : std::string("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16));
        }
        return found;
    }
    static std::string answer(const question& q, bool truncated) {
        const bool known = q.label == "both" || q.label == "four" || q.label == "many" ||
                           q.label == "late" || q.label == "local" || q.label == "retry" ||
                           q.label == "empty";
        const std::size_t code = q.label == "refused"  ? 5
                                 : q.label == "failed" ? 2
                                 : known               ? 0
                                                       : 3; // NXDOMAIN
        const auto found = truncated ? std::vector<std::string>() : addresses(q);
        std::string text = q.id + number(0x8180 | (truncated ? 0x0200U : 0U) | code) + number(1) +
                           number(found.size()) + number(0) + number(0) + q.encoded;
        for (const std::string& address : found) {
            text += number(0xc00c) + number(q.type) + number(1) + number(0) + number(60) +
                    number(address.size()) + address;
        }
        return text;
    }

    io_context context_;
    std::uint16_t port_ = 0;
    std::atomic<int> datagrams_{0};
    std::atomic<int> connections_{0};
    int retries_ = 0;
};

} // namespace cares_test
