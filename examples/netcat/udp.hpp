// netcat -u: every read of the input is one datagram, and every datagram goes to the output.
#pragma once

#include "streams.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace netcat {

/// The size of a read that nc(1) uses. 64 KiB would exceed the largest UDP payload.
inline constexpr std::size_t input_piece = std::size_t{16} << 10;
inline constexpr std::size_t largest_datagram = std::size_t{64} << 10;

inline task<> converse_by_datagrams(net::socket peer, std::chrono::nanoseconds idle) {
    co_await converse(peer, {.idle = idle, .input_piece = input_piece, .has_end = false});
}

/// Waits for a datagram, and from then on talks only to its sender.
inline task<> listen_for_datagrams(net::endpoint local, std::chrono::nanoseconds idle) {
    net::socket socket = net::socket::create_udp(local.family());
    socket.bind(local).value();
    std::fprintf(stderr, "listening on %s\n", socket.local_endpoint().to_string().c_str());
    std::vector<std::byte> first(largest_datagram);
    auto [n, from] = co_await socket.recv_from(first);
    (co_await socket.connect(from)).value();
    pipe_end output(::dup(STDOUT_FILENO));
    (co_await write_all(output, {first.data(), n.value()})).value();
    co_await converse_by_datagrams(std::move(socket), idle);
}

/// Connecting a UDP socket sends nothing, so a closed port is reported by a later call.
inline task<net::socket> connect_for_datagrams(std::string host, std::string port) {
    const net::inet_address address = (co_await net::resolve(host, port)).front();
    net::socket socket = net::socket::create_udp(address.family());
    (co_await socket.connect(address)).value();
    co_return socket;
}

} // namespace netcat
