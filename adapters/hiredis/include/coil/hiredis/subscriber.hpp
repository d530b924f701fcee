#pragma once

#include <coil/core/async_generator.hpp>
#include <coil/core/task.hpp>
#include <coil/hiredis/connection.hpp>

#include <memory>
#include <string>
#include <vector>

namespace coil::hiredis {

/// A published message.
struct message {
    std::string channel;
    std::string pattern; ///< of psubscribe(); "" for subscribe()
    std::string payload;
};

/// A connection that receives published messages.
///
///     auto s = co_await hiredis::subscriber::connect({.port = 6379});
///     co_await s.subscribe({"news"});
///     auto messages = s.messages();
///     while (auto m = co_await messages.next()) use(m->channel, m->payload);
///
/// Threading: one context. One task consumes messages() while others may subscribe and unsubscribe.
///
/// Cancellation: a cancelled await throws std::system_error (operation_canceled) and loses no
/// message. A range of messages() ends when its next() is cancelled; call messages() again.
///
/// Errors: connection_error when the connection breaks. Redis keeps no messages: those published
/// before a new subscriber has subscribed are lost. command_error if the server refuses a command.
class subscriber {
public:
    /// Connects and authenticates as the options say. The database does not matter: a channel
    /// belongs to the server, and has the same name for the clients of every database.
    [[nodiscard]] static task<subscriber> connect(options to = {});

    subscriber(subscriber&&) noexcept;
    subscriber& operator=(subscriber&&) noexcept;
    /// Closes the connection. Precondition: no task is using it.
    ~subscriber();

    /// Return when the server has confirmed. The names are copied before the calls return. Messages
    /// that arrive meanwhile are kept for messages(). Precondition: the list is not empty.
    [[nodiscard]] task<> subscribe(const std::vector<std::string>& channels);
    [[nodiscard]] task<> unsubscribe(const std::vector<std::string>& channels);
    /// The same for patterns: "news.*".
    [[nodiscard]] task<> psubscribe(const std::vector<std::string>& patterns);
    [[nodiscard]] task<> punsubscribe(const std::vector<std::string>& patterns);

    /// The messages, as an endless range. At most one such range may be in use; it must not outlive
    /// the subscriber.
    [[nodiscard]] async_generator<message> messages();

private:
    class state;
    explicit subscriber(std::unique_ptr<state> s) noexcept;

    std::unique_ptr<state> state_;
};

} // namespace coil::hiredis
