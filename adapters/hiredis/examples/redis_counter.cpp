// A hundred tasks count in Redis through one connection, and one task receives published messages:
//
//     redis_counter [PORT]

#include <coil/coil.hpp>
#include <coil/hiredis.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace coil;

// [commands]
task<> visit(hiredis::connection& c) {
    for (int i = 0; i < 10; ++i) {
        co_await c.call("INCR", "visits");
    }
}

task<> count(hiredis::options server) {
    auto c = co_await hiredis::connection::connect(server);
    co_await c.call("DEL", "visits");
    scope visitors;
    for (int i = 0; i < 100; ++i) {
        visitors.spawn(visit(c)); // the commands of all of them are pipelined
    }
    co_await visitors.join();
    const auto visits = co_await c.call("GET", "visits");
    std::printf("visits: %s\n", std::string(visits.text()).c_str());
}
// [/commands]

// [messages]
task<> publish_and_receive(hiredis::options server) {
    auto c = co_await hiredis::connection::connect(server);
    auto subscriber = co_await hiredis::subscriber::connect(server);
    co_await subscriber.subscribe({"news"});
    co_await c.call("PUBLISH", "news", "hello");
    auto messages = subscriber.messages();
    if (const auto m = co_await messages.next()) {
        std::printf("%s: %s\n", m->channel.c_str(), m->payload.c_str());
    }
}
// [/messages]

task<> count_and_publish(hiredis::options server) {
    co_await count(server);
    co_await publish_and_receive(server);
}

int main(int argc, char** argv) {
    hiredis::options server;
    if (argc > 1) {
        server.port = static_cast<std::uint16_t>(std::atoi(argv[1]));
    }
    coil::run(count_and_publish(server));
}
