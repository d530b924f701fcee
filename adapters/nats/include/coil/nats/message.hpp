#pragma once

#include <string>

namespace coil::nats {

/// A message that was received.
struct message {
    std::string subject;
    std::string reply_to; ///< the subject for the answer; empty: none is expected
    std::string headers;  ///< as sent, "NATS/1.0\r\nName: value\r\n..."; empty: none
    std::string payload;
};

} // namespace coil::nats
