#pragma once

#include <coil/core/task.hpp>
#include <coil/kafka/error.hpp>
#include <coil/kafka/message.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace coil::kafka {

namespace detail {
class consumer_client;
}

/// A function that consumer::next() calls when partitions are assigned to the consumer. It may
/// change the offsets, for example to those that are stored in a database.
using on_assigned = std::function<task<>(std::vector<position>&)>;

/// A member of a consumer group, as an asynchronous range:
///
///     kafka::consumer c({{"bootstrap.servers", brokers}, {"group.id", "billing"}}, {"orders"});
///     for (;;) {
///         kafka::message m = co_await c.next();
///         process(m);
///         co_await c.commit(m);
///     }
///
/// Threading: a consumer is created and used on one context; librdkafka has threads of its own.
///
/// Cancellation: a cancelled await throws std::system_error with std::errc::operation_canceled. No
/// message is lost: a later next() returns it. A cancelled commit may take effect nevertheless.
class consumer {
public:
    /// Subscribes to topics; one that begins with '^' is a regular expression for names. Throws
    /// error if "group.id" is missing or librdkafka does not accept a property. Offsets are
    /// committed only by commit() and commit_positions(), unless "enable.auto.commit" is "true".
    /// Precondition: called on a context.
    consumer(config properties, const std::vector<std::string>& topics,
             on_assigned assigned = nullptr);
    consumer(consumer&&) noexcept;
    consumer& operator=(consumer&&) noexcept;
    /// Does not leave the group: the group reassigns the partitions only when the session times
    /// out. Prefer close(). Blocks until librdkafka's threads have ended, usually a few
    /// milliseconds. Precondition: no coroutine awaits a member.
    ~consumer();

    /// The next message. Call it at least once per "max.poll.interval.ms". Throws error, for
    /// example for a topic that does not exist; the consumer remains usable unless is_fatal(). Only
    /// one coroutine at a time may wait.
    [[nodiscard]] task<message> next();

    /// Commits the offset after this message and waits until the group has stored it.
    [[nodiscard]] task<> commit(const message& m);
    /// Commits positions: each offset is that of the next message to be consumed.
    [[nodiscard]] task<> commit_positions(const std::vector<position>& offsets);

    /// Leaves the group, so that other members take over immediately. The consumer is then
    /// unusable.
    [[nodiscard]] task<> close();

    /// The partitions that are currently assigned. Their offsets are unspecified.
    [[nodiscard]] std::vector<position> assignment() const;
    /// Whether librdkafka has reported an error from which it does not recover.
    [[nodiscard]] bool is_fatal() const noexcept;

private:
    std::unique_ptr<detail::consumer_client> client_;
};

} // namespace coil::kafka
