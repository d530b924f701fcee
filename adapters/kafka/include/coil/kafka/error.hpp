#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace coil::kafka {

/// Properties of librdkafka (its CONFIGURATION.md): {{"bootstrap.servers", "127.0.0.1:9092"}}.
using config = std::map<std::string, std::string>;

/// An error of librdkafka. what() names the brokers, and the topic if it is an error of producing.
/// For an error in the configuration, what() is the reason that librdkafka gives.
class error : public std::runtime_error {
public:
    error(int code, const std::string& text) : std::runtime_error("kafka: " + text), code_(code) {}
    /// An rd_kafka_resp_err_t.
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

} // namespace coil::kafka
