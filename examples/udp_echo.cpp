// udp_echo PORT: sends every datagram back to where it came from.
//
//     udp_echo 9000
//     udp_echo 9000 --plain        without segmentation offload (GRO, GSO)
//     udp_echo 9000 --multishot    one datagram at a time, in buffers of a pool
//
// It receives and sends many datagrams per system call. With segmentation offload the kernel also
// joins datagrams of one client and passes the joined datagram through the network stack.

#include "server.hpp"

#include <coil/coil.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

using namespace coil;

namespace {

task<> echo_batches(const net::socket& s, bool offload) {
    // Pieces of 64 KiB hold about a thousand small datagrams each.
    net::datagram_batch batch(64, offload ? 65535 : 2048);
    for (;;) {
        if (const io_result n = co_await net::receive_batch(s, batch); n == -ECANCELED) {
            co_return;
        } else if (n < 0) {
            continue; // an error report: an earlier answer could not be delivered
        }
        if (const io_result n = co_await net::send_batch(s, batch); n == -ECANCELED) {
            co_return;
        }
    }
}

task<> echo_one_by_one(const net::socket& s) {
    buffer_pool pool({.buffers = 256, .buffer_size = 4096, .incremental = false});
    net::datagram_stream incoming = net::datagrams(s, pool);
    for (;;) {
        const net::datagram d = co_await incoming.next();
        if (d.result() == -ECANCELED) {
            co_return;
        }
        if (d) {
            (void)co_await net::send_datagram(s, {d.bytes().data(), d.bytes().size()}, d.info());
        }
    }
}

task<> serve(std::uint16_t port, std::string_view mode) {
    net::socket s = net::socket::create_udp();
    s.bind(port).value();
    (void)s.set_receive_buffer_size(4 << 20);
    if (mode.empty()) {
        net::enable(s, {.segments = true}).value();
    }
    example::say_where(s.local_endpoint());
    if (mode == "--multishot") {
        co_await echo_one_by_one(s);
    } else {
        co_await echo_batches(s, mode.empty());
    }
}

} // namespace

int main(int argc, char** argv) try {
    std::uint16_t port = 0;
    const std::string_view mode = argc == 3 ? argv[2] : "";
    if (argc < 2 || argc > 3 || !example::parse_number(argv[1], port) ||
        (!mode.empty() && mode != "--plain" && mode != "--multishot")) {
        std::fprintf(stderr, "usage: udp_echo PORT [--plain|--multishot]\n");
        return 2;
    }
    const signal_set stop{SIGINT, SIGTERM};
    io_context_options options;
    options.idle = idle_policy::park();
    coil::run(
        [](task<> server, const signal_set& signals) -> task<> {
            co_await when_any(std::move(server), signals.next());
        }(serve(port, mode), stop),
        options);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "udp_echo: %s\n", e.what());
    return 1;
}
