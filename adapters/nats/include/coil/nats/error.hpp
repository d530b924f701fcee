#pragma once

#include <stdexcept>
#include <string>

namespace coil::nats {

/// An error of a server, or of the connection to it. what() names the server.
class error : public std::runtime_error {
public:
    enum class kind {
        connection,    ///< no server accepts the connection, or it ended and was not restored
        refused,       ///< the server answered with -ERR: authorization, permissions, limits
        protocol,      ///< the server violated the NATS protocol
        no_responders, ///< a request whose subject has no subscriber
        invalid,       ///< a subject, payload or option that the protocol does not allow
    };

    error(kind why, const std::string& text) : std::runtime_error("nats: " + text), why_(why) {}
    [[nodiscard]] kind why() const noexcept { return why_; }

private:
    kind why_;
};

} // namespace coil::nats
