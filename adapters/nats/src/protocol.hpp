#pragma once

#include <coil/nats/options.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The text of the NATS client protocol.

namespace coil::nats::detail {

/// The INFO message in which a server describes itself at the beginning of a connection.
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
    std::size_t size = 0; ///< including the headers
};

/// Parses the argument of INFO.
[[nodiscard]] server_info parse_info(std::string_view json);
/// Parses the arguments of MSG or HMSG; nullopt if they are malformed.
[[nodiscard]] std::optional<delivery> parse_delivery(std::string_view arguments,
                                                     bool has_headers) noexcept;
struct host_port {
    std::string host;
    unsigned short port;
};
/// Splits "host:port" or "[ipv6]:port". Throws error::kind::invalid if it is malformed.
[[nodiscard]] host_port parse_server(std::string_view server);
/// Returns the CONNECT line.
[[nodiscard]] std::string connect_line(const options& how);
/// Throws error::kind::invalid if the subject is malformed. `wildcards` allows * and >, which only
/// subscriptions may contain.
void check_subject(std::string_view subject, bool wildcards);

} // namespace coil::nats::detail
