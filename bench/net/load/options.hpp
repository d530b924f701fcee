// The options of the saturating client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace load {

enum class engine { automatic, uring, epoll };

struct options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    unsigned connections = 50;
    unsigned pipeline = 1; // requests in flight on each connection
    // sends a new request for each reply; otherwise the next `pipeline` requests after the last one
    bool sliding = false;
    // the server answers each receive once, however many requests it contains
    bool one_reply = false;
    std::uint64_t requests = 0; // ends the measured window; 0: only `seconds` ends it
    double seconds = 2;
    double warm_up = 0.5;
    double give_up = 10; // seconds without any reply
    unsigned batch = 0;  // replies awaited per call; 0: depends on the number of connections
    int server_pid = 0;  // its CPU clock is read at both ends of the window
    engine use = engine::automatic;
    std::string request = "*1\r\n$4\r\nPING\r\n";
};

options parse_options(int argc, char** argv);

} // namespace load
