#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace coil::kafka {

/// A consumed message.
struct message {
    std::string topic;
    std::int32_t partition = 0;
    std::int64_t offset = 0;
    std::optional<std::string> key;
    std::string value;          ///< empty if the message has none (a tombstone)
    std::int64_t timestamp = 0; ///< milliseconds since the Unix epoch; -1: unknown
};

/// A position in a partition.
struct position {
    std::string topic;
    std::int32_t partition = 0;
    /// Where consuming begins; -1001 (RD_KAFKA_OFFSET_INVALID): at the committed offset.
    std::int64_t offset = -1001;
};

} // namespace coil::kafka
