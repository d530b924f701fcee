#pragma once

#include <coil/core/task.hpp>
#include <coil/nats/message.hpp>
#include <coil/nats/options.hpp>
#include <coil/nats/subscription.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace coil::nats {

namespace detail {
class client;
}

/// A connection to a NATS server or cluster.
///
///     nats::connection c = co_await nats::connection::connect({.servers = {"127.0.0.1:4222"}});
///     co_await c.publish("greet.joe", "hello");
///     nats::message answer = co_await c.request("time", "", 1s);
///
/// After the connection is lost, it reconnects to any server of the cluster; meanwhile publish()
/// continues to accept messages. Delivery is NATS's "at most once": messages in transit are lost.
/// When flush() returns, the server has received everything.
///
/// Threading: all members are used on the context on which connect() was awaited.
///
/// Cancellation: a cancelled await throws std::system_error with std::errc::operation_canceled and
/// leaves the connection usable.
class connection {
public:
    /// Connects to the first server of the list that accepts. If none does, throws error with the
    /// reason of each. A server that requires TLS is not supported.
    [[nodiscard]] static task<connection> connect(options how = {});

    connection(connection&&) noexcept;
    connection& operator=(connection&&) noexcept;
    /// Closes the connection. Precondition: no coroutine awaits one of its members.
    ~connection();

    /// Appends a message to the send buffer. Waits only while more than options::max_unsent bytes
    /// are unsent. Throws error::kind::invalid for a subject with blanks or a payload larger than
    /// the server accepts, and error::kind::connection once the connection is closed.
    [[nodiscard]] task<> publish(std::string subject, std::string payload,
                                 std::string reply_to = {});

    /// Subscribes to a subject, in which `*` stands for one token and a final `>` for the rest. If
    /// `queue` is not empty, each message goes to only one subscriber of that queue group. Does not
    /// wait until the server has processed the subscription; await flush() for that.
    [[nodiscard]] task<subscription> subscribe(std::string subject, std::string queue = {});

    /// Publishes a message and waits for one reply. Throws std::errc::timed_out after the limit,
    /// and error::kind::no_responders if the subject has no subscriber.
    [[nodiscard]] task<message> request(std::string subject, std::string payload,
                                        std::chrono::milliseconds limit);

    /// Waits until the server has processed everything that was published and subscribed before.
    /// Throws error::kind::connection if the connection is lost meanwhile.
    [[nodiscard]] task<> flush();

    /// Ends all subscriptions, lets the server process what was published, and calls close().
    [[nodiscard]] task<> drain();
    /// Closes the connection immediately.
    void close() noexcept;

    /// Whether the connection to a server is established at the moment.
    [[nodiscard]] bool is_connected() const noexcept;
    /// "host:port" of the current server, or of the last one if there is no connection.
    [[nodiscard]] std::string server() const;
    /// How often a lost connection was restored.
    [[nodiscard]] std::uint64_t reconnects() const noexcept;

private:
    explicit connection(std::unique_ptr<detail::client> state) noexcept;

    std::unique_ptr<detail::client> client_;
};

} // namespace coil::nats
