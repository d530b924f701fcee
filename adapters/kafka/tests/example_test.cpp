#include "mock_cluster.hpp"

#include <coil/coil.hpp>

#include <csignal>
#include <cstdlib>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using namespace kafka_test;

namespace {

TEST(KafkaExample, KafkaTailPrintsMessagesAndLeavesTheGroup) {
    mock_cluster cluster(1);
    cluster.create("orders", 1);
    coil::run([](mock_cluster& at) -> task<> {
        {
            kafka::producer p(at.producer());
            co_await p.send({.topic = "orders", .value = "first", .key = "a"});
            co_await p.send({.topic = "orders", .value = "second"});
            co_await p.flush();
        }
        const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
        process tail =
            process::spawn({std::string(folder != nullptr ? folder : ".") + "/kafka_tail",
                            at.brokers(), "printers", "orders"});
        buffered_reader out{tail.stdout()};
        const auto one = co_await timeout(out.read_until('\n'), 30s);
        EXPECT_EQ(std::string(one.value_or("nothing")), "orders/0@0 a first");
        const auto two = co_await timeout(out.read_until('\n'), 30s);
        EXPECT_EQ(std::string(two.value_or("nothing")), "orders/0@1 - second");
        tail.kill(SIGTERM);
        const exit_status status = co_await timeout(tail.wait(), 30s);
        EXPECT_EQ(status.code(), 0);
    }(cluster));
}

} // namespace
