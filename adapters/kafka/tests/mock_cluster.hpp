#pragma once

#include <coil/kafka.hpp>

#include <stdexcept>
#include <string>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

namespace kafka_test {

/// librdkafka's mock cluster: brokers simulated on loopback ports.
class mock_cluster {
public:
    explicit mock_cluster(int brokers = 3) {
        rd_kafka_conf_t* const conf = rd_kafka_conf_new();
        rd_kafka_conf_set_log_cb(conf, nullptr);
        char why[256] = {};
        owner_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
        cluster_ = owner_ == nullptr ? nullptr : rd_kafka_mock_cluster_new(owner_, brokers);
        if (cluster_ == nullptr) {
            throw std::runtime_error("no mock cluster");
        }
    }
    mock_cluster(const mock_cluster&) = delete;
    mock_cluster& operator=(const mock_cluster&) = delete;
    ~mock_cluster() {
        rd_kafka_mock_cluster_destroy(cluster_);
        rd_kafka_destroy(owner_);
    }

    [[nodiscard]] std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
    void create(const char* topic, int partitions, int replicas = 1) {
        rd_kafka_mock_topic_create(cluster_, topic, partitions, replicas);
    }
    /// Makes `broker` the leader of a partition.
    void lead(const char* topic, int partition, int broker) {
        rd_kafka_mock_partition_set_leader(cluster_, topic, partition, broker);
    }
    void kill(int broker) { rd_kafka_mock_broker_set_down(cluster_, broker); }
    void restart(int broker) { rd_kafka_mock_broker_set_up(cluster_, broker); }
    void answer_after(int broker, int ms) { rd_kafka_mock_broker_set_rtt(cluster_, broker, ms); }
    void coordinate(const char* group, int broker) {
        rd_kafka_mock_coordinator_set(cluster_, "group", group, broker);
    }

    [[nodiscard]] coil::kafka::config producer() const {
        return {{"bootstrap.servers", brokers()}, {"linger.ms", "1"}};
    }
    [[nodiscard]] coil::kafka::config consumer(const std::string& group) const {
        return {{"bootstrap.servers", brokers()},
                {"group.id", group},
                {"auto.offset.reset", "earliest"},
                {"session.timeout.ms", "6000"},
                {"heartbeat.interval.ms", "300"}};
    }

private:
    rd_kafka_t* owner_ = nullptr;
    rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

} // namespace kafka_test
