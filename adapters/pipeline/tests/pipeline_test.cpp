#include "kafka/tests/mock_cluster.hpp"
#include "pq/tests/postgres_server.hpp"

#include <coil/coil.hpp>
#include <coil/pq.hpp>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

constexpr int customers = 10;
constexpr int partitions = 3;

/// The mock cluster takes 3 s to form a group, so session.timeout.ms must be longer.
process start_pipeline(const kafka_test::mock_cluster& cluster, const std::string& conninfo) {
    const char* const folder = std::getenv("COIL_EXAMPLES_DIR");
    process_options options;
    options.standard_error = redirect::inherit();
    return process::spawn({std::string(folder != nullptr ? folder : ".") + "/pipeline",
                           cluster.brokers(), "orders", conninfo, "session.timeout.ms=4000",
                           "heartbeat.interval.ms=200"},
                          options);
}

task<> produce_orders(const kafka_test::mock_cluster& cluster, int from, int to) {
    kafka::producer p(cluster.producer());
    for (int i = from; i < to; ++i) {
        co_await p.send({.topic = "orders",
                         .value = std::to_string(i % customers) + ' ' + std::to_string(i),
                         .partition = i % partitions});
    }
    co_await p.flush();
}

task<long> count(pq::connection& db, std::string what) {
    co_return (co_await db.query("select " + what + " from invoices")).value_as<long>();
}

/// Kills the pipeline several times, each time after it has stored some batches. The last one
/// stores the remaining orders.
task<> kill_and_finish(kafka_test::mock_cluster& cluster, pq::connection& db,
                       std::string conninfo) {
    constexpr int rounds = 3;
    constexpr int orders_each = 700;
    for (int round = 0; round < rounds; ++round) {
        co_await produce_orders(cluster, round * orders_each, (round + 1) * orders_each);
        process worker = start_pipeline(cluster, conninfo);
        buffered_reader out{worker.stdout()};
        for (int batches = 0; batches <= round; ++batches) {
            const auto line = co_await timeout(out.read_until('\n'), 60s);
            EXPECT_TRUE(line) << "the pipeline has ended";
        }
        co_await sleep_for(std::chrono::milliseconds(7 * round)); // into the next batch
        worker.kill(SIGKILL);
        co_await worker.wait();
    }
    constexpr long all = long{rounds} * orders_each;
    EXPECT_GT(co_await count(db, "count(*)"), 0);
    process last = start_pipeline(cluster, conninfo);
    for (int i = 0; i < 6000 && co_await count(db, "count(*)") < all; ++i) {
        co_await sleep_for(10ms);
    }
    EXPECT_EQ(co_await count(db, "count(*)"), all);
    EXPECT_EQ(co_await count(db, "count(distinct amount)"), all);
    EXPECT_EQ(co_await count(db, "count(*) filter (where name = 'customer ' || customer)"), all);
    last.kill(SIGTERM);
    const exit_status status = co_await timeout(last.wait(), 30s);
    EXPECT_EQ(status.code(), 0);
}

TEST(Pipeline, EachOrderBecomesOneInvoiceAlthoughThePipelineIsKilled) {
    if (pq_test::postgres_programs().empty()) {
        GTEST_SKIP()
            << "PostgreSQL is not installed (run ./dev test --interop, or install postgresql)";
    }
    const pq_test::postgres server;
    kafka_test::mock_cluster cluster(3);
    cluster.create("orders", partitions);
    coil::run([](const pq_test::postgres& s, kafka_test::mock_cluster& c) -> task<> {
        pq::connection db = co_await pq::connection::connect(s.conninfo());
        co_await db.query("create table customers (id int primary key, name text);"
                          "insert into customers select i, 'customer ' || i "
                          "from generate_series(0, 9) i");
        co_await db.query("create table invoices (topic text, part int, position bigint, "
                          "customer int, name text, amount int, "
                          "primary key (topic, part, position))");
        co_await kill_and_finish(c, db, s.conninfo());
    }(server, cluster));
}

} // namespace
