// Prints the messages of Kafka topics, as a member of a consumer group.
//
//     kafka_tail 127.0.0.1:9092 GROUP TOPIC...
//
// A message is committed after it was printed, so it is printed again if a crash comes in between.
// On SIGINT or SIGTERM the program leaves the group, so that other members take over immediately.

#include <coil/coil.hpp>
#include <coil/kafka.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace coil;

namespace {

// [consume]
task<> print_all(kafka::consumer& c) {
    for (;;) {
        const kafka::message m = co_await c.next();
        std::printf("%s/%d@%lld %s %s\n", m.topic.c_str(), m.partition,
                    static_cast<long long>(m.offset), m.key.value_or("-").c_str(), m.value.c_str());
        std::fflush(stdout);
        co_await c.commit(m);
    }
}

task<> tail(std::string brokers, std::string group, std::vector<std::string> topics,
            const signal_set& signals) {
    kafka::consumer c(
        {{"bootstrap.servers", brokers}, {"group.id", group}, {"auto.offset.reset", "earliest"}},
        topics);
    co_await when_any(print_all(c), signals.next());
    co_await c.close();
}
// [/consume]

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fputs("usage: kafka_tail BROKERS GROUP TOPIC...      (host:port,host:port)\n", stderr);
        return 2;
    }
    try {
        const signal_set signals{SIGINT, SIGTERM};
        coil::run(tail(argv[1], argv[2], {argv + 3, argv + argc}, signals));
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "kafka_tail: %s\n", e.what());
        return 1;
    }
}
