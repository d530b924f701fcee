// The character generator of RFC 864: sends lines of a rotating pattern to every client, as fast as
// the client reads them, until the client disconnects. Input is ignored.
//
//     chargen 1900 &
//     netcat localhost 1900 | head -c 1G >/dev/null
//
// It shows a server whose sessions only send. The text is built once and shared, so a session needs
// only a frame of a few hundred bytes. A client that does not read for a minute is disconnected.
// SIGINT or SIGTERM ends the server.

#include "server.hpp"

#include <coil/coil.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// 95 lines of 72 printable characters; each line is rotated by one character.
std::string whole_pattern() {
    constexpr int printable = '~' - ' ' + 1;
    std::string text;
    for (int line = 0; line < printable; ++line) {
        for (int column = 0; column < 72; ++column) {
            text += static_cast<char>(' ' + (line + column) % printable);
        }
        text += "\r\n";
    }
    return text;
}

/// The pattern, repeated: a large buffer costs the same system call as a small one.
const std::string& pattern() {
    static const std::string text = [] {
        const std::string once = whole_pattern();
        std::string many;
        while (many.size() + once.size() <= std::size_t{512} << 10) {
            many += once;
        }
        return many;
    }();
    return text;
}

task<> session(net::socket peer) {
    while ((co_await peer.send_all(pattern())).has_value()) {
    }
}

} // namespace

int main(int argc, char** argv) try {
    std::uint16_t port = 0;
    if (argc != 2 || !example::parse_number(argv[1], port)) {
        std::fprintf(stderr, "usage: chargen PORT\n");
        return 2;
    }
    const example::server_signals signals; // before threads are started
    runtime rt{1};
    const auto meter = std::make_shared<net::serve_meter>();
    net::serve_options options{
        .idle = 60s, .grace = 1s, .on_listening = example::say_where, .meter = meter};
    rt.block_on(example::run_until_stopped(net::serve(rt, port, session, options), signals,
                                           [meter] { return to_string(meter->metrics()); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "chargen: %s\n", e.what());
    return 1;
}
