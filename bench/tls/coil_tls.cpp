// A TLS server on coil::tls, with the modes of raw_tls, and `requests`: a small HTTP server.

#include <coil/coil.hpp>
#include <coil/tls.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <sys/resource.h>

using namespace coil;

namespace {

constexpr std::size_t block_size = 65536;
constexpr std::string_view answer =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";

task<tls::stream> accept_one(net::acceptor& from, const tls::context& ctx) {
    net::socket peer = co_await from.accept();
    peer.set_no_delay(true).value();
    tls::stream s(std::move(peer), ctx);
    (co_await s.accept()).value();
    co_return s;
}

task<> receive(net::acceptor& from, const tls::context& ctx) {
    tls::stream s = co_await accept_one(from, ctx);
    const auto block = std::make_unique<char[]>(block_size);
    while (int(io_result(co_await s.read_some({block.get(), block_size})).value()) > 0) {
    }
    (co_await s.shutdown_write()).value();
}

task<> send(net::acceptor& from, const tls::context& ctx, std::uint64_t mib) {
    tls::stream s = co_await accept_one(from, ctx);
    const auto block = std::make_unique<char[]>(block_size);
    for (std::uint64_t i = 0; i < mib * 16; ++i) {
        (co_await write_all(s, const_buffer(block.get(), block_size))).value();
    }
    (co_await s.shutdown_write()).value();
}

task<> handshakes(net::acceptor& from, const tls::context& ctx) {
    for (;;) {
        tls::stream s = co_await accept_one(from, ctx);
        (co_await s.shutdown_write()).value();
    }
}

/// Answers one byte, and then waits for more.
task<> answer_byte(tls::stream s) {
    char byte = 0;
    while (int(io_result(co_await s.read_some({&byte, 1}))) == 1) {
        (co_await s.write_some({&byte, 1})).value();
    }
}

task<> idle(net::acceptor& from, const tls::context& ctx) {
    for (;;) {
        co_spawn(answer_byte(co_await accept_one(from, ctx)));
    }
}

task<> answer_requests(net::socket peer, const tls::context& ctx) {
    peer.set_no_delay(true).value();
    tls::stream s(std::move(peer), ctx);
    (co_await s.accept()).value();
    buffered_reader in(s, 4096);
    auto lines = in.lines();
    while (const auto line = co_await lines.next()) {
        if (line->empty()) {
            (co_await write_all(s, answer)).value();
        }
    }
}

task<> requests(net::acceptor& from, const tls::context& ctx) {
    while (net::socket peer = co_await from.accept()) {
        co_spawn(answer_requests(std::move(peer), ctx));
    }
}

task<> serve(std::uint16_t port, const tls::context& ctx, std::string_view mode,
             std::uint64_t mib) {
    net::acceptor from(net::inet_address("127.0.0.1", port));
    if (mode == "receive") {
        co_await receive(from, ctx);
    } else if (mode == "send") {
        co_await send(from, ctx, mib);
    } else if (mode == "handshakes") {
        co_await handshakes(from, ctx);
    } else if (mode == "requests") {
        co_await requests(from, ctx);
    } else {
        co_await idle(from, ctx);
    }
}

/// Shifts the addresses of later allocations: see tls_peer.h.
void shift_heap() {
    if (const char* const offset = std::getenv("HEAP_OFFSET")) {
        static void* volatile kept = nullptr;
        kept = std::malloc(std::strtoul(offset, nullptr, 10));
        (void)kept;
    }
}

} // namespace

int main(int argc, char** argv) try {
    if (argc != 5 && argc != 6) {
        std::fprintf(stderr, "usage: coil_tls PORT CERTIFICATE KEY "
                             "receive|send MIB|handshakes|idle|requests\n");
        return 2;
    }
    shift_heap();
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    const tls::context ctx = tls::context::server(argv[2], argv[3]);
    const std::string_view mode = argv[4];
    io_context_options options;
    if (mode == "receive" || mode == "send") { // sleeps at once, as a blocking socket does
        options.idle = idle_policy::park();
    }
    coil::run(serve(static_cast<std::uint16_t>(std::atoi(argv[1])), ctx, mode,
                    argc == 6 ? std::strtoull(argv[5], nullptr, 10) : 0),
              options);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "coil_tls: %s\n", e.what());
    return 1;
}
