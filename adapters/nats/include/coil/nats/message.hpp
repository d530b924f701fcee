#pragma once

#include <string>

namespace coil::nats {

/// A received message.
struct message {
    std::string subject;
    std::string reply_to; ///< the subject for the reply; empty: none is expected
    std::string headers;  ///< as sent, "NATS/1.0\r\nName: value\r\n..."; empty: none
    std::string payload;
};

} // namespace coil::nats
