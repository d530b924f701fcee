// Answers requests for the time, as one of any number of instances that share the work.
//
//     time_service 127.0.0.1:4222 [SERVER...]
//     nats request time.utc ''                        # in another terminal
//
// On SIGINT or SIGTERM it answers the requests that it has received, and ends.

#include <coil/coil.hpp>
#include <coil/nats.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>
#include <string>
#include <vector>

using namespace coil;

namespace {

std::string time_now(bool utc) {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    utc ? ::gmtime_r(&now, &parts) : ::localtime_r(&now, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, "%F %T %Z", &parts)};
}

// [service]
task<> answer(nats::connection& c, nats::subscription& requests) {
    while (const std::optional<nats::message> m = co_await requests.next()) {
        if (!m->reply_to.empty()) {
            co_await c.publish(m->reply_to, time_now(m->subject == "time.utc"));
        }
    }
}

task<> serve(std::vector<std::string> servers, const signal_set& signals) {
    nats::connection c =
        co_await nats::connection::connect({.servers = servers, .name = "time_service"});
    nats::subscription requests = co_await c.subscribe("time.*", "time_services");
    co_await c.flush();
    std::printf("connected to %s\n", c.server().c_str());
    std::fflush(stdout);

    scope work;
    work.spawn(answer(c, requests));
    co_await signals.next();
    requests.unsubscribe(); // answer() then ends, after the requests received so far
    co_await work.join();
    co_await c.flush();
}
// [/service]

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: time_service SERVER...      (host:port)\n", stderr);
        return 2;
    }
    try {
        const signal_set signals{SIGINT, SIGTERM};
        coil::run(serve({argv + 1, argv + argc}, signals));
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "time_service: %s\n", e.what());
        return 1;
    }
}
