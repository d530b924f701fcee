// Reads orders from Kafka, adds the customer's name from PostgreSQL, and writes invoices in
// batches. Each order becomes exactly one invoice, however often the program is killed and started
// again, and however many instances of it run.
//
//     pipeline BROKERS TOPIC postgresql://user@db.example/shop [PROPERTY=VALUE...]
//
// The position in each partition is stored in the database, in the transaction that stores the
// invoices. An instance may have lost a partition to another one without knowing it. The stored
// position then differs from the expected one, and the transaction fails. An order is "CUSTOMER-ID
// AMOUNT".

#include <coil/coil.hpp>
#include <coil/kafka.hpp>
#include <coil/pq.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t largest_batch = 200;
constexpr auto longest_wait = 50ms;

using batch = std::vector<kafka::message>;
using partition = std::pair<std::string, std::int32_t>; // topic and number

task<> make_tables(pq::connection& db) {
    co_await db.query("create table if not exists positions (topic text, part int, next bigint, "
                      "primary key (topic, part));"
                      "create table if not exists invoices (topic text, part int, position bigint, "
                      "customer int, name text, amount int, primary key (topic, part, position))");
}

// [positions]
/// Called when Kafka assigns partitions: consuming continues at the positions in the database.
task<> find_positions(pq::connection& db, std::vector<kafka::position>& assigned) {
    for (kafka::position& p : assigned) {
        const pq::result known =
            co_await db.query("insert into positions values ($1, $2, 0) on conflict (topic, part) "
                              "do update set next = positions.next returning next",
                              p.topic, p.partition);
        p.offset = known.value_as<std::int64_t>();
    }
}

/// Stores the positions after a batch; fails if another instance has changed them meanwhile.
task<> advance(pq::connection& db, const batch& messages) {
    std::map<partition, std::pair<std::int64_t, std::int64_t>> ranges; // first, and last + 1
    for (const kafka::message& m : messages) {
        const auto [range, is_new] =
            ranges.try_emplace({m.topic, m.partition}, m.offset, m.offset + 1);
        range->second.second = m.offset + 1;
    }
    for (const auto& [where, range] : ranges) {
        const pq::result changed = co_await db.query(
            "update positions set next = $4 where topic = $1 and part = $2 and next = $3",
            where.first, where.second, range.first, range.second);
        if (changed.affected_rows() != 1) {
            throw std::runtime_error("another instance has taken over " + where.first + '/' +
                                     std::to_string(where.second));
        }
    }
}
// [/positions]

task<> write_invoices(pq::connection& db, const batch& messages) {
    for (const kafka::message& m : messages) {
        int customer = 0;
        int amount = 0;
        if (std::sscanf(m.value.c_str(), "%d %d", &customer, &amount) != 2) {
            std::fprintf(stderr, "pipeline: \"%s\" is not an order\n", m.value.c_str());
            continue;
        }
        co_await db.query("insert into invoices select $1, $2, $3, $4, "
                          "(select name from customers where id = $4), $5",
                          m.topic, m.partition, m.offset, customer, amount);
    }
}

// [batches]
/// Waits for a message, and adds those that follow within `longest_wait`.
task<batch> next_batch(kafka::consumer& orders) {
    batch messages;
    messages.push_back(co_await orders.next());
    const auto until = std::chrono::steady_clock::now() + longest_wait;
    try {
        while (messages.size() < largest_batch) {
            messages.push_back(co_await timeout_at(orders.next(), until));
        }
    } catch (const std::system_error& e) {
        if (e.code() != std::errc::timed_out) {
            throw;
        }
    }
    co_return messages;
}

task<> process_all(kafka::consumer& orders, pq::connection& db) {
    for (;;) {
        const batch messages = co_await next_batch(orders);
        co_await db.transaction([&](pq::connection& c) -> task<> {
            co_await advance(c, messages); // first, because it may fail
            co_await write_invoices(c, messages);
        });
        std::printf("%zu\n", messages.size());
        std::fflush(stdout);
    }
}
// [/batches]

task<> run_pipeline(kafka::config properties, std::string topic, std::string conninfo,
                    const signal_set& signals) {
    pq::connection db = co_await pq::connection::connect(conninfo);
    co_await make_tables(db);
    kafka::consumer orders(
        std::move(properties), {std::move(topic)},
        [&db](std::vector<kafka::position>& assigned) { return find_positions(db, assigned); });
    co_await when_any(process_all(orders, db), signals.next());
    co_await orders.close();
}

kafka::config properties_of(int argc, char** argv) {
    kafka::config properties{{"bootstrap.servers", argv[1]}, {"group.id", "pipeline"}};
    for (int i = 4; i < argc; ++i) {
        const std::string word = argv[i];
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) {
            throw std::invalid_argument(word + " is not PROPERTY=VALUE");
        }
        properties[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return properties;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fputs("usage: pipeline BROKERS TOPIC DATABASE [PROPERTY=VALUE...]\n", stderr);
        return 2;
    }
    try {
        const signal_set signals{SIGINT, SIGTERM};
        coil::run(run_pipeline(properties_of(argc, argv), argv[2], argv[3], signals));
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "pipeline: %s\n", e.what());
        return 1;
    }
}
