#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace coil::sqlite {

/// Options of a database.
struct options {
    /// The maximum number of connections, each of which occupies a thread while it executes a
    /// statement. Precondition: not 0.
    std::size_t connections = 4;
    /// How long a statement waits for locks of other connections and processes before it fails with
    /// SQLITE_BUSY.
    std::chrono::milliseconds busy_limit = std::chrono::seconds(5);
    /// Executed on each new connection.
    std::string on_open = "pragma journal_mode = wal; pragma synchronous = normal; "
                          "pragma foreign_keys = on";
};

} // namespace coil::sqlite
