// The character generator of RFC 864: sends every client lines of a rotating pattern, as fast as it
// reads them, until it disconnects. Input is ignored.
//
//     chargen 1900 &
//     netcat localhost 1900 | head -c 1G >/dev/null
//
// It shows a server whose sessions only send. The text is built once and shared, so a session is a
// frame of a few hundred bytes.

#include <coil/coil.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

using namespace coil;

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

task<> serve(net::acceptor acceptor) {
    while (net::socket peer = co_await acceptor.accept()) {
        co_spawn(session(std::move(peer)));
    }
}

std::optional<std::uint16_t> parse(const char* word) {
    std::uint16_t port = 0;
    const char* const end = word + std::strlen(word);
    const auto [rest, error] = std::from_chars(word, end, port);
    return rest == end && error == std::errc() ? std::optional(port) : std::nullopt;
}

} // namespace

int main(int argc, char** argv) try {
    const std::optional<std::uint16_t> port = argc == 2 ? parse(argv[1]) : std::nullopt;
    if (!port) {
        std::fprintf(stderr, "usage: chargen PORT\n");
        return 2;
    }
    net::acceptor acceptor{net::inet_address(*port)};
    std::printf("listening on %s\n", acceptor.local_address().to_string().c_str());
    std::fflush(stdout);
    coil::run(serve(std::move(acceptor)));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "chargen: %s\n", e.what());
    return 1;
}
