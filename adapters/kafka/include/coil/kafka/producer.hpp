#pragma once

#include <coil/core/task.hpp>
#include <coil/kafka/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coil::kafka {

namespace detail {
class producer_client;
}

/// A message to be produced.
struct record {
    std::string topic;
    std::string value{};
    std::optional<std::string> key{};
    std::int32_t partition = -1; ///< -1: chosen by librdkafka's partitioner
};

/// Where a message was stored.
struct delivery {
    std::int32_t partition;
    std::int64_t offset;
};

/// Produces messages.
///
///     kafka::producer p({{"bootstrap.servers", "127.0.0.1:9092"}});
///     kafka::delivery d = co_await p.produce({.topic = "orders", .value = "42"});
///     for (int i = 0; i < 1000; ++i)
///         co_await p.send({.topic = "orders", .value = std::to_string(i)});
///     co_await p.flush(); // all of them are stored, or an error is thrown
///
/// Threading: a producer is created and used on one context; librdkafka has threads of its own.
///
/// Cancellation: each await throws std::system_error with std::errc::operation_canceled. A message
/// that was given to librdkafka may be stored nevertheless.
class producer {
public:
    /// Connects in the background. Throws error for a property that librdkafka does not accept.
    /// Precondition: called on a context.
    explicit producer(const config& properties);
    producer(producer&&) noexcept;
    producer& operator=(producer&&) noexcept;
    /// Discards what has not been delivered: await flush() before. Blocks until librdkafka's
    /// threads have ended, usually some milliseconds. Precondition: no coroutine awaits a member.
    ~producer();

    /// Produces a message and waits until it is stored as the property "acks" demands, or has
    /// failed. Throws error if it was not delivered ("message.timeout.ms").
    [[nodiscard]] task<delivery> produce(record what);

    /// Queues a message; waits only while librdkafka's queue is full. flush() reports failures.
    [[nodiscard]] task<> send(record what);

    /// Waits until all messages were delivered or have failed. Throws the first error of a message
    /// given to send() since the last flush().
    [[nodiscard]] task<> flush();

    /// The messages that were neither delivered nor have failed.
    [[nodiscard]] std::size_t outstanding() const noexcept;

private:
    std::unique_ptr<detail::producer_client> client_;
};

} // namespace coil::kafka
