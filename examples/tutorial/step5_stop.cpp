// Step 5: the server ends on SIGINT or SIGTERM, and its clients get a goodbye.
#include "chat.hpp"

#include <csignal>
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

task<> server(net::acceptor ac, const signal_set& signals) {
    chat::room room{chat::limits{}};
    event stop;
    co_await when_all(chat::serve(std::move(ac), room, stop), set_at_signal(signals, stop));
}

int main(int argc, char** argv) try {
    const int port = argc > 1 ? std::atoi(argv[1]) : 7000;
    const signal_set signals{SIGINT, SIGTERM}; // before other threads are started
    net::acceptor ac{net::inet_address{static_cast<std::uint16_t>(port)}};
    std::printf("listening on %s\n", ac.local_address().to_string().c_str());
    std::fflush(stdout);
    coil::run(server(std::move(ac), signals));
    std::printf("stopped\n");
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
