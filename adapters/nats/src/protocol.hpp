#pragma once

#include <coil/nats/options.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The text of the NATS client protocol.

namespace coil::nats::detail {

/// What a server says of itself when a connection begins.
struct server_info {
    std::size_t max_payload = std::size_t{1} << 20;
    bool tls_required = false;
    std::vector<std::string> cluster; ///< "host:port" of other servers
};

/// The arguments of MSG and HMSG.
struct delivery {
    std::string_view subject;
    std::string_view reply_to;
    unsigned long sid = 0;
    std::size_t header_size = 0;
    std::size_t size = 0; ///< with the headers
};

/// Parses the argument of INFO.
[[nodiscard]] server_info parse_info(std::string_view json);
/// Parses the arguments of MSG or HMSG; nullopt if they are malformed.
[[nodiscard]] std::optional<delivery> parse_delivery(std::string_view arguments,
                                                     bool has_headers) noexcept;
/// Splits "host:port" or "[ipv6]:port"; throws error::kind::invalid.
struct host_port {
    std::string host;
    unsigned short port;
};
[[nodiscard]] host_port parse_server(std::string_view server);
/// The line CONNECT.
[[nodiscard]] std::string connect_line(const options& how);
/// Throws error::kind::invalid unless a message can be published to (or, with wildcards, a
/// subscription made of) that subject.
void check_subject(std::string_view subject, bool wildcards);

} // namespace coil::nats::detail
