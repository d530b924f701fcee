// Step 6: the server on all processors.
#include "chat.hpp"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

using namespace coil;

task<> set_at_signal(const signal_set& signals, event& stop) {
    co_await signals.next();
    stop.set();
}

int main(int argc, char** argv) try {
    const int port = argc > 1 ? std::atoi(argv[1]) : 7000;
    const signal_set signals{SIGINT, SIGTERM}; // before the runtime starts threads
    chat::room room{chat::limits{}};           // one for all contexts
    event stop;

    runtime rt; // a context for each processor
    net::inet_address address{static_cast<std::uint16_t>(port)};
    for (std::size_t i = 0; i < rt.size(); ++i) {
        // Each context has an acceptor of its own; the kernel distributes the connections.
        net::acceptor ac(address, {.reuse_port = true});
        address = ac.local_address(); // with port 0: the port that the first acceptor got
        rt.context(i).co_spawn(chat::serve(std::move(ac), room, stop));
    }
    rt.context(0).co_spawn(set_at_signal(signals, stop));
    std::printf("listening on %s\n", address.to_string().c_str());
    std::fflush(stdout);
    rt.run(); // until every task has ended
    std::printf("stopped\n");
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
