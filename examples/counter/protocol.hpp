#pragma once

#include <cstdint>

namespace counter {

/// "Add `amount`." A client gives its requests increasing numbers and repeats a request, with its
/// number, until it is answered; the server counts it once. An amount of 0 queries the sum. Numbers
/// are sent in native byte order: client and server run on the same architecture.
struct request {
    std::uint64_t client;
    std::uint64_t number;
    std::int64_t amount;
};

/// The answer to the request with that number: the sum including it. It is sent when the request is
/// on disk.
struct reply {
    std::uint64_t number;
    std::int64_t sum;
};

} // namespace counter
