// coil::kafka and librdkafka, with the brokers of librdkafka's mock cluster in this process: their
// threads are part of the CPU time of all variants.

#include "kafka/tests/mock_cluster.hpp"
#include "rounds.hpp"

#include <coil/coil.hpp>
#include <coil/kafka.hpp>

#include <cstdint>

using namespace coil;

namespace {

constexpr const char* topic = "numbers";
constexpr int partitions = 32;
const std::string value(100, 'x');

[[noreturn]] void fail(const char* what, const char* why) {
    std::fprintf(stderr, "%s: %s\n", what, why);
    std::exit(1);
}

/// A client of librdkafka, configured like coil::kafka's.
rd_kafka_t* make_client(rd_kafka_type_t type, const kafka::config& properties,
                        void (*report)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr) {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    char why[256] = {};
    for (const auto& [name, text] : properties) {
        if (rd_kafka_conf_set(conf, name.c_str(), text.c_str(), why, sizeof why) !=
            RD_KAFKA_CONF_OK) {
            fail("rd_kafka_conf_set", why);
        }
    }
    if (report != nullptr) {
        rd_kafka_conf_set_dr_msg_cb(conf, report);
    }
    rd_kafka_t* const client = rd_kafka_new(type, conf, why, sizeof why);
    if (client == nullptr) {
        fail("rd_kafka_new", why);
    }
    return client;
}

long delivered = 0;
void count_delivery(rd_kafka_t* /*client*/, const rd_kafka_message_t* m, void* /*opaque*/) {
    delivered += m->err == 0 ? 1 : 0;
}

/// Like librdkafka's own performance example: produces until the queue is full, then polls.
void produce_by_hand(const kafka::config& properties, long n) {
    rd_kafka_t* const client = make_client(RD_KAFKA_PRODUCER, properties, &count_delivery);
    rd_kafka_topic_t* const to = rd_kafka_topic_new(client, topic, nullptr);
    delivered = 0;
    for (long i = 0; i < n; ++i) {
        while (rd_kafka_produce(to, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                                const_cast<char*>(value.data()), value.size(), nullptr, 0,
                                nullptr) != 0) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                fail("rd_kafka_produce", rd_kafka_err2str(rd_kafka_last_error()));
            }
            rd_kafka_poll(client, 10);
        }
        rd_kafka_poll(client, 0);
    }
    rd_kafka_flush(client, 60'000);
    if (delivered != n) {
        fail("librdkafka", "messages were not delivered");
    }
    rd_kafka_topic_destroy(to);
    rd_kafka_destroy(client);
}

task<> produce(kafka::config properties, long n) {
    kafka::producer p(properties);
    for (long i = 0; i < n; ++i) {
        co_await p.send({.topic = topic, .value = value});
    }
    co_await p.flush();
}

/// The same with one record for all messages, as librdkafka's loop has one buffer.
task<> produce_same(kafka::config properties, long n) {
    kafka::producer p(properties);
    const kafka::record same{.topic = topic, .value = value};
    for (long i = 0; i < n; ++i) {
        if (!p.try_send(same)) {
            co_await p.send(same);
        }
    }
    co_await p.flush();
}

kafka::config group(const kafka_test::mock_cluster& cluster) {
    static int last = 0;
    return cluster.consumer("group-" + std::to_string(++last));
}

void consume_by_hand(kafka::config properties, long n) {
    properties.try_emplace("enable.auto.commit", "false");
    rd_kafka_t* const client = make_client(RD_KAFKA_CONSUMER, properties);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t* const topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(client, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    for (long received = 0; received < n;) {
        rd_kafka_message_t* const m = rd_kafka_consumer_poll(client, 100);
        if (m != nullptr && m->err == 0 && received++ == 0) {
            rounds::prepared(); // the partitions are assigned
        }
        if (m != nullptr) {
            rd_kafka_message_destroy(m);
        }
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

task<> consume(kafka::config properties, long n) {
    kafka::consumer c(std::move(properties), {topic});
    for (long received = 0; received < n; ++received) {
        const kafka::message m = co_await c.next();
        if (received == 0) {
            rounds::prepared();
        }
    }
    co_await c.close();
}

} // namespace

int main(int argc, char** argv) {
    kafka_test::mock_cluster cluster;
    cluster.create(topic, partitions);
    const long n = rounds::operations(argc, argv, 1'000'000);
    rounds::compare(
        "produce 100 bytes", n,
        {{"librdkafka", [&](long k) { produce_by_hand(cluster.producer(), k); }},
         {"coil, send()", [&](long k) { coil::run(produce(cluster.producer(), k)); }},
         {"coil, try_send()", [&](long k) { coil::run(produce_same(cluster.producer(), k)); }}});
    // The brokers keep 5 MB for each partition.
    const long kept = n / 2;
    rounds::compare("consume 100 bytes", kept,
                    {{"librdkafka", [&](long k) { consume_by_hand(group(cluster), k); }},
                     {"coil, next()", [&](long k) { coil::run(consume(group(cluster), k)); }}});
}
