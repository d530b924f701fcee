// Connects standard input and output to any byte_stream. For TCP and Unix sockets netcat.cpp has a
// faster way.
#pragma once

#include <coil/coil.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace netcat {

using namespace coil;

/// The settings of a connection over a byte_stream.
struct stream_options {
    std::chrono::nanoseconds idle; // the program ends after this time without a transfer
    std::size_t input_piece = std::size_t{64} << 10; // the most that one read of the input returns
    bool has_end = true; // false: datagrams; an empty one is not the end
};

template <byte_stream Stream>
task<> send_input(Stream& peer, stream_options options) {
    pipe_end input(::dup(STDIN_FILENO));
    std::vector<std::byte> buffer(options.input_piece);
    for (int n; (n = io_result(co_await input.read_some(buffer)).value()) > 0;) {
        io_result(co_await write_all(peer, {buffer.data(), n})).value();
    }
    if (options.has_end) {
        io_result(co_await peer.shutdown_write()).value();
    }
}

template <byte_stream Stream>
task<> receive_output(Stream& peer, stream_options options) {
    pipe_end output(::dup(STDOUT_FILENO));
    std::vector<std::byte> buffer(std::size_t{64} << 10); // the largest datagram
    for (;;) {
        const int n = io_result(co_await peer.read_some(buffer)).value(); // -w: throws timed_out
        if (n == 0 && options.has_end) {
            co_return;
        }
        io_result(co_await write_all(output, {buffer.data(), n})).value();
    }
}

template <byte_stream Stream>
task<> send_input_and_wait(Stream& peer, stream_options options) {
    co_await send_input(peer, options);
    co_await sleep_for(std::chrono::years(1)); // until run() cancels it: the peer has ended
}

/// Returns when both sides have sent everything; if the input is a terminal, when the peer has.
template <byte_stream Stream>
task<> converse(Stream& stream, stream_options options) {
    idle_limited peer{stream, options.idle};
    try {
        if (::isatty(STDIN_FILENO) == 1) {
            co_await when_any(receive_output(peer, options), send_input_and_wait(peer, options));
        } else {
            co_await when_all(receive_output(peer, options), send_input(peer, options));
        }
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw;
        }
    }
}

} // namespace netcat
