// Sends COUNT blocks of SIZE bytes to 127.0.0.1:PORT, each by one await: `send`, or `send_zc`
// without a copy. Prints the CPU time.
//
//     coil_sends send|send_zc PORT SIZE COUNT

#include "../../lib/usage.hpp"

#include <coil/coil.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

coil::task<> sends(std::uint16_t port, std::size_t size, long count, bool without_copy) {
    coil::net::socket to = co_await coil::net::connect("127.0.0.1", port);
    const std::vector<std::byte> block(size, std::byte{'x'});
    const double before = usage::cpu_seconds();
    for (long i = 0; i < count; ++i) {
        for (coil::const_buffer rest(block); rest.size() > 0;) {
            const int sent = without_copy ? co_await coil::io::send_zc(to.native_handle(), rest)
                                          : co_await coil::io::send(to.native_handle(), rest);
            rest = rest.drop(static_cast<std::size_t>(coil::io_result(sent).value()));
        }
    }
    std::printf("{\"cpu_s\": %.6f}\n", usage::cpu_seconds() - before);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s send|send_zc PORT SIZE COUNT\n", argv[0]);
        return 2;
    }
    coil::io_context_options options;
    options.idle = coil::idle_policy::park();
    coil::io_context context(options);
    context.co_spawn(sends(static_cast<std::uint16_t>(std::strtoul(argv[2], nullptr, 10)),
                           std::strtoul(argv[3], nullptr, 10), std::strtol(argv[4], nullptr, 10),
                           std::strcmp(argv[1], "send_zc") == 0));
    context.run();
}
