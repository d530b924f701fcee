// A network counter that never loses what it has acknowledged.
//
//     counter serve 7010 sum.log            the server, and the file that stores the sum
//     counter add 7010 alice 5              adds 5 and prints the sum; repeats until answered
//     counter add 7010 alice 0              prints the sum
//
// The server may be killed, and the machine may lose power, at any moment: an acknowledged request
// is on disk, and a repeated request counts once. tests/sim/counter_test.cpp tests this with the
// same files (ledger.hpp, server.hpp, client.hpp) in the simulator, with thousands of crashes and
// network failures: docs/guide/testing.md.

#include "client.hpp"
#include "server.hpp"

#include <coil/coil.hpp>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>

using namespace coil;

namespace {

template <class Number>
bool parse(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    return rest == end && error == std::errc();
}

task<> serve_until(const signal_set& signals, net::acceptor& acceptor, const char* file) {
    co_await when_any(counter::serve(acceptor, file), signals.next());
}

/// A client's requests must have increasing numbers across runs of this program, so the numbers are
/// taken from the clock.
std::uint64_t next_number() {
    return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
}

} // namespace

int main(int argc, char** argv) try {
    const std::string_view what = argc > 1 ? argv[1] : "";
    std::uint16_t port = 0;
    std::int64_t amount = 0;
    if (what == "serve" && argc == 4 && parse(argv[2], port)) {
        const signal_set signals{SIGINT, SIGTERM};
        net::acceptor acceptor(net::inet_address("127.0.0.1", port));
        std::printf("listening on %s\n", acceptor.local_address().to_string().c_str());
        std::fflush(stdout);
        coil::run(serve_until(signals, acceptor, argv[3]));
        return 0;
    }
    if (what == "add" && argc == 5 && parse(argv[2], port) && parse(argv[4], amount)) {
        const counter::request asked{std::hash<std::string_view>()(argv[3]), next_number(), amount};
        const std::int64_t sum =
            coil::run(counter::ask(net::inet_address("127.0.0.1", port), asked));
        std::printf("%lld\n", static_cast<long long>(sum));
        return 0;
    }
    std::fprintf(stderr, "usage: counter serve PORT FILE\n"
                         "       counter add PORT NAME AMOUNT\n");
    return 2;
} catch (const std::exception& e) {
    std::fprintf(stderr, "counter: %s\n", e.what());
    return 1;
}
