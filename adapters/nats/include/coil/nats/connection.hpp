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
/// A connection that is lost is restored, to any server of the cluster, while publish() continues
/// to accept messages. Delivery is NATS's "at most once": what was on its way is lost. flush()
/// tells whether the server has everything.
///
/// Threading: all members are used on the context on which connect() was awaited.
///
/// Cancellation: each await throws std::system_error with std::errc::operation_canceled and leaves
/// the connection usable.
class connection {
public:
    /// Connects to the first server of the list that accepts. Throws error, which says why each of
    /// them did not. A server that requires TLS is not supported.
    [[nodiscard]] static task<connection> connect(options how = {});

    connection(connection&&) noexcept;
    connection& operator=(connection&&) noexcept;
    /// Closes it. Precondition: no coroutine awaits one of its members.
    ~connection();

    /// Appends a message to what is being sent; waits only while options::max_unsent bytes are
    /// unsent. Throws error::kind::invalid for a subject with blanks or a payload that the server
    /// does not accept, and error::kind::connection once the connection is closed.
    [[nodiscard]] task<> publish(std::string subject, std::string payload,
                                 std::string reply_to = {});

    /// Subscribes to a subject, in which `*` stands for one token and a final `>` for the rest.
    /// Each message goes to one of the subscribers that name the same queue. Returns without
    /// waiting for the server; flush() does.
    [[nodiscard]] task<subscription> subscribe(std::string subject, std::string queue = {});

    /// Publishes a message and waits for one answer. Throws std::errc::timed_out at the limit and
    /// error::kind::no_responders if nothing subscribes to the subject.
    [[nodiscard]] task<message> request(std::string subject, std::string payload,
                                        std::chrono::milliseconds limit);

    /// Waits until the server has processed everything that was published and subscribed before.
    /// Throws error::kind::connection if the connection is lost meanwhile.
    [[nodiscard]] task<> flush();

    /// Ends all subscriptions, lets the server process what was published, and closes.
    [[nodiscard]] task<> drain();
    /// Closes at once.
    void close() noexcept;

    /// Whether a server is connected at the moment.
    [[nodiscard]] bool is_connected() const noexcept;
    /// "host:port" of the server that is, or was last, connected.
    [[nodiscard]] std::string server() const;
    /// How often a lost connection was restored.
    [[nodiscard]] std::uint64_t reconnects() const noexcept;

private:
    explicit connection(std::unique_ptr<detail::client> state) noexcept;

    std::unique_ptr<detail::client> client_;
};

} // namespace coil::nats
