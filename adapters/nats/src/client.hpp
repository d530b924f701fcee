#pragma once

#include "protocol.hpp"

#include <coil/compose/scope.hpp>
#include <coil/nats/error.hpp>
#include <coil/nats/message.hpp>
#include <coil/nats/options.hpp>
#include <coil/net/socket.hpp>
#include <coil/stream/buffered_reader.hpp>
#include <coil/sync/event.hpp>
#include <coil/sync/oneshot.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coil::nats::detail {

class client;

/// A subscription's messages. The client refers to it from subscribe to unsubscribe.
class subscription_state {
public:
    subscription_state(client& owner, unsigned long sid, std::string subject, std::string queue)
        : client_(&owner), sid_(sid), subject_(std::move(subject)), queue_(std::move(queue)) {}
    subscription_state(const subscription_state&) = delete;
    subscription_state& operator=(const subscription_state&) = delete;
    ~subscription_state() { unsubscribe(); }

    task<std::optional<message>> next();
    void unsubscribe();
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

    // For the client.
    void deliver(message m, std::size_t max_pending);
    /// No more messages arrive. If `why` is not empty, it is thrown after the queued messages.
    void end(std::string why) noexcept;
    [[nodiscard]] std::string subscribe_line() const;

private:
    client* client_; // null: ended
    const unsigned long sid_;
    const std::string subject_;
    const std::string queue_;
    std::deque<message> pending_;
    auto_reset_event arrived_;
    std::uint64_t dropped_ = 0;
    std::string why_;
};

/// The state of a nats::connection, and the tasks that keep the connection alive. One context.
class client {
public:
    explicit client(options how);
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client() { end(""); }

    /// Connects to any server, then receives, sends and reconnects in the background.
    task<> open();
    /// Ends the background work and all subscriptions.
    void end(const std::string& why) noexcept;

    task<> publish(const std::string& subject, const std::string& payload,
                   const std::string& reply_to);
    task<message> request(const std::string& subject, const std::string& payload,
                          std::chrono::milliseconds limit);
    task<> flush();
    void subscribe(subscription_state& subscription, unsigned long sid);
    [[nodiscard]] unsigned long next_sid() noexcept { return ++last_sid_; }
    void unsubscribe(unsigned long sid);
    /// Messages that are in transit are still delivered.
    void unsubscribe_all();
    void end_subscriptions(const std::string& why) noexcept;

    [[nodiscard]] bool is_connected() const noexcept { return connected_; }
    [[nodiscard]] const std::string& server() const noexcept { return server_; }
    [[nodiscard]] std::uint64_t reconnects() const noexcept { return reconnects_; }

private:
    struct pong {
        event arrived;
        bool lost = false;
    };

    // Connecting.
    task<std::string> dial_any();
    task<> dial(const std::string& server);
    task<> greet();
    task<> stay_connected();
    task<bool> reconnect();

    // A connection.
    task<> receive();
    task<> send();
    task<> ping();
    task<std::string> read_line();
    task<> receive_message(std::string_view arguments, bool has_headers);
    void dispatch(unsigned long sid, message m);
    void expect_pong(pong* waiter);
    void lose_connection() noexcept;

    void check_open() const;
    [[nodiscard]] error failure(error::kind why, const std::string& text) const;
    void append(std::string_view text);

    const options how_;
    std::vector<std::string> servers_;
    std::string server_;
    server_info info_;
    std::optional<net::socket> socket_;
    std::optional<buffered_reader<net::socket&>> in_;
    bool connected_ = false;
    bool ended_ = false;
    std::string why_ended_;
    std::uint64_t reconnects_ = 0;

    std::string out_;     // not yet given to the socket
    std::string sending_; // being sent
    auto_reset_event has_output_;
    event has_room_{true};
    std::deque<pong*> pongs_;      // one for each unanswered PING, in order; null: only counted
    std::size_t unsent_pings_ = 0; // how many of these, the last ones, are still in out_

    unsigned long last_sid_ = 1; // 1 is the inbox for answers
    std::map<unsigned long, subscription_state*> subscriptions_;
    std::string inbox_;
    bool has_inbox_ = false;
    std::uint64_t last_request_ = 0;
    std::map<std::uint64_t, oneshot<message>*> requests_;

    std::optional<scope> background_; // declared last: its tasks use all of the above
};

} // namespace coil::nats::detail
