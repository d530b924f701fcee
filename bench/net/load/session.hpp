// The connections of one run and what is measured over them; the engines only move bytes.
#pragma once

#include "histogram.hpp"
#include "options.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace load {

struct connection {
    int fd = -1;
    unsigned due = 0;        // reply lines still to come
    std::uint64_t since = 0; // when the request was handed over, ns
    std::uint64_t had = 0;   // replies in the window
};

std::uint64_t now_ns();

class session {
public:
    // Connects all; exits with a message where that fails.
    explicit session(const options& o);

    const options& settings() const { return options_; }
    std::vector<connection>& connections() { return connections_; }

    // One or more requests, as they go out in one send.
    std::string_view request() const { return batch_; }

    void sent(connection& c, std::uint64_t now) {
        c.due = replies_per_batch_;
        c.since = now;
    }

    // Takes received bytes; true when the connection's next request is due.
    bool received(connection& c, std::string_view bytes, std::uint64_t now);

    // The connection failed or was closed by the server; the run goes on with the others.
    void lost(connection& c);

    // Called once per loop turn: opens and closes the measured window. True when it is over.
    bool over(std::uint64_t now);

    // One JSON object on stdout. Returns the exit code.
    int report(std::string_view engine_name) const;

private:
    struct clocks {
        std::uint64_t wall = 0, client_cpu = 0, server_cpu = 0;
    };
    clocks read_clocks(std::uint64_t now) const;
    // How far the connection that is furthest from the mean of all is from it, as a part of it.
    double unfairness() const;

    options options_;
    std::string batch_;
    unsigned replies_per_batch_;
    std::vector<connection> connections_;
    std::size_t alive_ = 0;
    std::uint64_t begin_ = 0;
    std::uint64_t last_reply_ = 0;
    bool measuring_ = false;
    clocks opened_, closed_;
    std::uint64_t replies_ = 0;        // in the window
    std::uint64_t replies_before_ = 0; // while warming up
    std::uint64_t errors_ = 0;
    bool stalled_ = false;
    histogram latency_;
};

// The engines: send on every connection, receive, send again, until session::over. Both keep this
// thread busy with nothing else. run_uring returns false, having done nothing, where the kernel
// refuses a ring.
bool run_uring(session& s);
void run_epoll(session& s);

} // namespace load
