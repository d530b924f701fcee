#pragma once

#include <string>

namespace coil::detail {

/// What a descriptor refers to, as far as the system tells.
struct descriptor_target {
    enum class what : unsigned char { unknown, peer, local, file };

    what kind = what::unknown;
    std::string text;   ///< the address of the peer, of the listening socket, or a path
    double idle_s = -1; ///< since the peer of a TCP socket last sent data; negative: unknown
};

/// A few system calls.
[[nodiscard]] descriptor_target find_target(int fd);

} // namespace coil::detail
