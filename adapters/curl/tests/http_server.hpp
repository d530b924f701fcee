#pragma once

#include "support/expect.hpp"
#include "support/run.hpp"
#include "support/server_process.hpp"

#include <coil/coil.hpp>
#include <coil/curl.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace curl_test {

using namespace coil;
using namespace std::chrono_literals;
using namespace adapter_test;

/// The byte at a position of a large body.
inline char pattern(std::size_t position) { return static_cast<char>('a' + position % 23); }

/// An HTTP/1.1 server on a thread of its own. The first segment of the path says what to answer:
///
///     /echo             the method and the body
///     /header/NAME      the value of that field of the request
///     /size/N           N bytes of pattern()
///     /chunked/N        the same without Content-Length
///     /cut/N            promises 10 MB and resets the connection after N
///     /redirect/N       N redirects, then /echo
///     /status/N         that status
///     /leave            "bye", then closes the connection without having announced it
///     /silent           nothing, until the client closes the connection
///     /refuse           413 before the request's body has been read
///     /later            the header immediately, the body after release()
class http_server {
public:
    http_server() {
        std::promise<std::uint16_t> port;
        auto known = port.get_future();
        context_.co_spawn(serve(std::move(port)));
        context_.start();
        port_ = known.get();
    }
    http_server(const http_server&) = delete;
    http_server& operator=(const http_server&) = delete;
    ~http_server() {
        context_.stop();
        context_.join();
    }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string url(const std::string& path) const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }
    [[nodiscard]] int connections() const noexcept { return connections_.load(); }
    [[nodiscard]] std::size_t sent() const noexcept { return sent_.load(); }
    [[nodiscard]] std::size_t received() const noexcept { return received_.load(); }
    /// How long the server waits after each block of a request's body.
    void read_slowly(std::chrono::milliseconds pause) { pause_.store(pause); }

    void release() { released_.store(true); }

private:
    struct incoming {
        std::string method;
        std::string path;
        curl::header_list headers;
    };
    using reader = buffered_reader<net::socket&>;

    task<> serve(std::promise<std::uint16_t> port) {
        net::acceptor acceptor{net::inet_address{"127.0.0.1", 0}};
        port.set_value(acceptor.local_address().port());
        supervisor sessions;
        while (net::socket peer = co_await acceptor.accept()) {
            ++connections_;
            co_await sessions.spawn(session(std::move(peer)));
        }
    }

    task<> session(net::socket peer) {
        peer.set_no_delay(true);
        try {
            reader in{peer};
            while (auto request = co_await read_head(in)) {
                if (!co_await answer(peer, in, *request)) {
                    break;
                }
            }
        } catch (const std::system_error&) { // the client closed the connection
        }
    }

    static task<std::optional<incoming>> read_head(reader& in) {
        incoming r;
        while (auto line = co_await in.read_until('\n')) {
            std::string_view text = *line;
            text.remove_suffix(1);
            if (text.empty()) {
                co_return r;
            }
            if (r.method.empty()) {
                const std::size_t space = text.find(' ');
                r.method = text.substr(0, space);
                r.path = text.substr(space + 1, text.rfind(' ') - space - 1);
            } else {
                const std::size_t colon = text.find(':');
                const std::size_t begin = std::min(colon + 2, text.size());
                r.headers.add(std::string(text.substr(0, colon)), std::string(text.substr(begin)));
            }
        }
        co_return std::nullopt;
    }

    task<std::string> read_body(net::socket& peer, reader& in, const incoming& r) {
        if (r.headers.find("Expect")) {
            co_await peer.send_all("HTTP/1.1 100 Continue\r\n\r\n");
        }
        std::string body;
        if (r.headers.find("Transfer-Encoding")) {
            for (std::size_t size = 1; size > 0;) {
                const auto line = co_await in.read_until('\n');
                if (!line) {
                    throw std::system_error(std::make_error_code(std::errc::connection_reset));
                }
                size = std::stoul(std::string(*line), nullptr, 16);
                co_await read_block(in, body, size);
                co_await in.read_until('\n');
            }
        } else if (const auto length = r.headers.find("Content-Length")) {
            co_await read_block(in, body, std::stoul(std::string(*length)));
        }
        co_return body;
    }
    task<> read_block(reader& in, std::string& body, std::size_t size) {
        char block[8192];
        while (size > 0) {
            const int n = co_await in.read_some({block, std::min(size, sizeof block)});
            if (n <= 0) {
                throw std::system_error(std::make_error_code(std::errc::connection_reset));
            }
            body.append(block, static_cast<std::size_t>(n));
            size -= static_cast<std::size_t>(n);
            received_ += static_cast<std::size_t>(n);
            if (pause_.load() > 0ms) {
                co_await sleep_for(pause_.load());
            }
        }
    }

    static std::string head(int status, const std::string& more) {
        return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + more + "\r\n";
    }
    static task<> send(net::socket& peer, std::string text) {
        if (co_await peer.send_all(text) < 0) {
            throw std::system_error(std::make_error_code(std::errc::connection_reset));
        }
    }
    task<> send_text(net::socket& peer, int status, std::string text) {
        co_await send(peer, head(status, "Content-Length: " + std::to_string(text.size()) +
                                             "\r\nX-Empty:\r\n") +
                                text);
    }
    task<> send_pattern(net::socket& peer, std::size_t size, bool chunked) {
        std::string block;
        for (std::size_t begin = 0; begin < size; begin += block.size()) {
            block.resize(std::min<std::size_t>(size - begin, 16384));
            for (std::size_t i = 0; i < block.size(); ++i) {
                block[i] = pattern(begin + i);
            }
            if (chunked) {
                char length[20];
                const auto end =
                    std::to_chars(length, length + sizeof length, block.size(), 16).ptr;
                co_await send(peer, std::string(length, end) + "\r\n" + block + "\r\n");
            } else {
                co_await send(peer, block);
            }
            sent_ += block.size();
        }
        if (chunked) {
            co_await send(peer, "0\r\nX-Trailer: yes\r\n\r\n");
        }
    }

    /// Returns whether the connection stays open.
    task<bool> answer(net::socket& peer, reader& in, const incoming& r) {
        const std::size_t slash = r.path.find('/', 1);
        const std::string what = r.path.substr(1, slash - 1);
        const std::string rest = slash == std::string::npos ? "" : r.path.substr(slash + 1);
        if (what == "refuse") {
            co_await send_text(peer, 413, "too large");
            // Closing with unread data would reset the connection, and the answer would be lost.
            char rest_of_body[4096];
            co_await peer.shutdown_write();
            while (co_await in.read_some(rest_of_body) > 0) {
            }
            co_return false;
        }
        const std::string body = co_await read_body(peer, in, r);
        if (what == "echo") {
            co_await send_text(peer, 200, r.method + ' ' + body);
        } else if (what == "header") {
            co_await send_text(peer, 200, std::string(r.headers.find(rest).value_or("none")));
        } else if (what == "size") {
            co_await send(peer, head(200, "Content-Length: " + rest + "\r\n"));
            co_await send_pattern(peer, std::stoul(rest), false);
        } else if (what == "chunked") {
            co_await send(peer, head(200, "Transfer-Encoding: chunked\r\n"));
            co_await send_pattern(peer, std::stoul(rest), true);
        } else if (what == "cut") {
            co_await send(peer, head(200, "Content-Length: 10000000\r\n"));
            co_await send_pattern(peer, std::stoul(rest), false);
            peer.set_linger(0s);
            co_return false;
        } else if (what == "redirect") {
            const int left = std::stoi(rest);
            const std::string to = left > 1 ? "/redirect/" + std::to_string(left - 1) : "/echo";
            co_await send(peer,
                          head(303, "Location: " + to + "\r\nContent-Length: 5\r\n") + "moved");
        } else if (what == "status") {
            co_await send_text(peer, std::stoi(rest), "text");
        } else if (what == "leave") {
            co_await send_text(peer, 200, "bye");
            co_return false;
        } else if (what == "silent") {
            char nothing[16];
            co_await in.read_some(nothing);
            co_return false;
        } else if (what == "later") {
            co_await send(peer, head(200, "Content-Length: 4\r\n"));
            while (!released_.load()) {
                co_await sleep_for(1ms);
            }
            co_await send(peer, "late");
        } else {
            co_await send_text(peer, 200, "hello");
        }
        co_return true;
    }

    io_context context_;
    std::uint16_t port_ = 0;
    std::atomic<int> connections_{0};
    std::atomic<std::size_t> sent_{0};
    std::atomic<std::size_t> received_{0};
    std::atomic<std::chrono::milliseconds> pause_{0ms};
    std::atomic<bool> released_{false};
};

/// The tests connect to the server directly, even if the environment names a proxy.
class CurlTest : public ::testing::Test {
protected:
    void SetUp() override { ::setenv("no_proxy", "127.0.0.1", 1); }

    http_server server;
};

} // namespace curl_test
