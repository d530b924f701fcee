#pragma once

#include <coil/core/task.hpp>
#include <coil/nats/message.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace coil::nats {

class connection;

namespace detail {
class subscription_state;
}

/// The messages of one subject, as an asynchronous range:
///
///     nats::subscription orders = co_await c.subscribe("orders.*");
///     while (std::optional<nats::message> m = co_await orders.next())
///         handle(*m);
///
/// A subscription survives the loss of its connection: after reconnecting, the connection
/// subscribes again. Messages published meanwhile are not delivered.
///
/// Threading: like connection. The connection may be destroyed before its subscriptions; next()
/// then returns the messages that have arrived, and nullopt after them.
class subscription {
public:
    subscription(subscription&&) noexcept;
    subscription& operator=(subscription&&) noexcept;
    /// Unsubscribes. Precondition: no coroutine waits in next().
    ~subscription();

    /// The next message, or nullopt when the subscription or its connection has been closed and all
    /// its messages have been taken. Throws error if the connection was lost and could not be
    /// restored. At most one coroutine at a time may wait.
    ///
    /// Cancellation: std::errc::operation_canceled; no message is lost.
    [[nodiscard]] task<std::optional<message>> next();

    /// Ends the subscription. next() still returns the messages that have arrived.
    void unsubscribe();

    /// The number of messages dropped because options::max_pending messages were waiting.
    [[nodiscard]] std::uint64_t dropped() const noexcept;

private:
    friend class connection;
    explicit subscription(std::unique_ptr<detail::subscription_state> state) noexcept;

    std::unique_ptr<detail::subscription_state> state_;
};

} // namespace coil::nats
