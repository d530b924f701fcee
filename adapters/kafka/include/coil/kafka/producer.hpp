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
/// Cancellation: a cancelled await throws std::system_error with std::errc::operation_canceled. A
/// message that librdkafka has already taken may still be stored.
class producer {
public:
    /// Connects in the background. Throws error for a property that librdkafka does not accept.
    /// Precondition: called on a context.
    explicit producer(const config& properties);
    producer(producer&&) noexcept;
    producer& operator=(producer&&) noexcept;
    /// Discards messages that are not delivered yet: await flush() first. Blocks until librdkafka's
    /// threads have ended, usually a few milliseconds. Precondition: no coroutine awaits a member.
    ~producer();

    /// Produces a message and waits until it is stored as the property "acks" demands, or has
    /// failed. Throws error if it was not delivered, at the latest after the time that the property
    /// "message.timeout.ms" sets.
    [[nodiscard]] task<delivery> produce(record what);

    /// Queues a message; waits only while librdkafka's queue is full. flush() reports failures.
    [[nodiscard]] task<> send(record what) {
        while (!try_send(what)) {
            co_await wait_for_space();
        }
    }
    /// Queues a message like send(), or returns false if librdkafka's queue is full. Throws error
    /// if librdkafka refuses the message. A loop of calls that succeed does not let other tasks
    /// run.
    [[nodiscard]] bool try_send(const record& what);

    /// Waits until all messages have been delivered or have failed. Throws the first error since
    /// the last flush() of a message that was passed to send(), try_send(), or a produce() that was
    /// cancelled.
    [[nodiscard]] task<> flush();

    /// The number of messages that have neither been delivered nor failed so far.
    [[nodiscard]] std::size_t outstanding() const noexcept;

private:
    [[nodiscard]] task<> wait_for_space();

    std::unique_ptr<detail::producer_client> client_;
};

} // namespace coil::kafka
