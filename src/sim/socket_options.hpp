#pragma once

#include <sys/socket.h>

namespace coil::sim::detail {

/// An option of sockets that a world knows: socket(7), tcp(7), ip(7), ipv6(7), udp(7).
struct socket_option {
    enum class kind : unsigned char {
        boolean,   // any value but 0 is stored as 1
        number,    // an int from `lowest` to `highest`
        structure, // `size` bytes, initially 0
    };

    int level;
    int name;
    kind is;
    int initial = 0;
    int lowest = 0;
    int highest = 0;
    ::socklen_t size = sizeof(int);
};

/// Finds the option that a call names. If there is none, returns null, and the error of the call in
/// `error`. A world refuses options that it does not know, because it would not have their effect.
const socket_option* find_option(int family, int type, int level, int name, bool sets,
                                 int& error) noexcept;

/// The value of an option that was not set.
int initial_value(int level, int name) noexcept;

} // namespace coil::sim::detail
