#pragma once

#include <cstdint>

namespace counter {

/// "Add `amount`." A client numbers its requests upwards and repeats one, with its number, until it
/// is answered; however often the server hears it, it counts once. An amount of 0 asks for the sum.
/// Numbers travel as they lie in memory: both sides are machines of one kind.
struct request {
    std::uint64_t client;
    std::uint64_t number;
    std::int64_t amount;
};

/// The sum after the request of that number. Whoever reads this may rely on it: it is on the disk.
struct reply {
    std::uint64_t number;
    std::int64_t sum;
};

} // namespace counter
