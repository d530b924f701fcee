#pragma once

#include "support/random.hpp"

#include <coil/core/task.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace conformance {

/// The action of a step. Each works on one of a few channels (the directions of two connections,
/// and two pipes) or files; an action that is impossible in the current state does nothing.
enum class action : std::uint8_t {
    write,
    read,
    start_reading, // begins a read, which continues during the following steps
    join,          // ends such a read; cancels it if it would wait forever
    race,          // a cancellation against the event that the operation waits for
    finish,        // shuts down writing
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
    std::uint8_t which;   // channel or file
    std::uint8_t variant; // selects one of several equivalent calls
    std::uint16_t size;
};

using script = std::vector<step>;

script random_script(std::uint64_t seed, std::size_t steps);
std::string to_string(const step& s);
std::string to_string(const script& s);

/// The directory and sockets that a script uses: see differential.hpp.
class transfer_stage {
public:
    explicit transfer_stage(std::string directory) : directory_(std::move(directory)) {}

    coil::task<> open();
    coil::task<> close();

    [[nodiscard]] const std::string& directory() const { return directory_; }
    [[nodiscard]] int listener() const { return listener_; }

private:
    std::string directory_;
    int listener_ = -1;
};

/// Plays a script. Appends to `results`, one line per step, what must be the same on all backends.
/// Of a result that depends on timing, that is only whether it is possible.
coil::task<> play(const script& s, transfer_stage& stage, std::vector<std::string>& results);

} // namespace conformance
