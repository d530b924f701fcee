#pragma once

#include <coil/base/freed_by.hpp>
#include <coil/core/task.hpp>
#include <coil/io/owned_descriptor.hpp>
#include <coil/kafka/error.hpp>

#include <memory>
#include <string>

#include <librdkafka/rdkafka.h>

namespace coil::kafka::detail {

using coil::detail::freed_by;
using queue_ptr = std::unique_ptr<rd_kafka_queue_t, freed_by<&rd_kafka_queue_destroy>>;
using list_ptr = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                 freed_by<&rd_kafka_topic_partition_list_destroy>>;

/// A configuration, owned until create() passes it to librdkafka.
class client_config {
public:
    client_config(const config& properties, void* opaque);
    client_config(const client_config&) = delete;
    client_config& operator=(const client_config&) = delete;
    ~client_config() {
        if (conf_ != nullptr) {
            rd_kafka_conf_destroy(conf_);
        }
    }
    [[nodiscard]] rd_kafka_conf_t* get() noexcept { return conf_; }
    /// Creates a client; throws error.
    [[nodiscard]] rd_kafka_t* create(rd_kafka_type_t type);

private:
    rd_kafka_conf_t* conf_ = rd_kafka_conf_new();
};

/// Awaits that one of librdkafka's queues is no longer empty.
class queue_events {
public:
    /// Throws std::system_error if the process has no descriptor left.
    queue_events();
    queue_events(const queue_events&) = delete;
    queue_events& operator=(const queue_events&) = delete;

    /// The queue must not be destroyed before unwatch().
    void watch(rd_kafka_queue_t* queue) noexcept;
    static void unwatch(rd_kafka_queue_t* queue) noexcept;
    /// Returns when the watched queue may have become non-empty. Precondition: it was found empty.
    /// librdkafka reports only the change, so afterwards poll the queue until it is empty again.
    [[nodiscard]] task<> wait();

private:
    const io::owned_descriptor event_;
};

/// The text of an error, with the brokers and what was attempted.
[[nodiscard]] error make_error(rd_kafka_resp_err_t code, const std::string& brokers,
                               const std::string& what);
[[nodiscard]] std::string brokers_of(const config& properties);

} // namespace coil::kafka::detail
