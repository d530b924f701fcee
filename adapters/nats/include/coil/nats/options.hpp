#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace coil::nats {

/// Options of a connection.
struct options {
    /// "host:port" of the servers of a cluster. The connected server reports the others.
    std::vector<std::string> servers{"127.0.0.1:4222"};
    std::string name{}; ///< shown by the server's monitoring
    std::string user{};
    std::string password{};
    std::string token{}; ///< instead of user and password

    /// The limit for one server to accept the connection and the credentials.
    std::chrono::milliseconds connect_timeout{2000};
    /// The pause between two rounds of attempts to reconnect.
    std::chrono::milliseconds reconnect_wait{100};
    /// The rounds of attempts after which a lost connection stays closed; 0: it is not restored.
    int max_reconnects = 600;
    /// The interval between two PINGs. A connection on which two are unanswered counts as lost.
    std::chrono::milliseconds ping_interval{30'000};

    /// publish() waits while more bytes than this have not been sent.
    std::size_t max_unsent = std::size_t{4} << 20;
    /// The messages that a subscription keeps until they are taken. Later ones are dropped, and
    /// counted: see subscription::dropped().
    std::size_t max_pending = 65536;
};

} // namespace coil::nats
