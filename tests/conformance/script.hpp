#pragma once

#include "support/random.hpp"

#include <coil/core/task.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace conformance {

/// What a step of a script does. Each works on one of a few channels (the directions of two
/// connections, and two pipes) or files; what makes no sense where it stands does nothing.
enum class action : std::uint8_t {
    write,
    read,
    start_reading, // and go on meanwhile
    join,          // what is read meanwhile; cancelled when it would wait for ever
    race,          // a cancellation against what it waits for
    finish,        // no more will be written
    close_reader,
    poll,
    splice,
    chain,
    open,
    close,
    file_read,
    file_write,
    file_sync,
    file_size,
    file_name,
    count
};

struct step {
    action what;
    std::uint8_t which; // channel or file
    std::uint8_t way;   // of some that must come to the same
    std::uint16_t size;
};

using script = std::vector<step>;

script random_script(std::uint64_t seed, std::size_t steps);
std::string to_string(const step& s);
std::string to_string(const script& s);

/// Plays it in an empty directory. What every kernel must answer goes to `results`, a line a step;
/// where time decides, only whether it is one of the possible answers.
coil::task<> play(const script& s, std::string directory, std::vector<std::string>& results);

} // namespace conformance
