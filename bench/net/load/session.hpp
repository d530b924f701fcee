// The connections of a run and the measurements over them; the engines only transfer bytes.
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
    unsigned due = 0;        // reply lines still expected
    unsigned probe = 0;      // replies until the one whose latency is measured; 0: none is
    std::uint64_t since = 0; // when the request was passed to the kernel, ns
    std::uint64_t had = 0;   // replies within the window
};

std::uint64_t now_ns();

class session {
public:
    // Opens all connections; exits with a message on failure.
    explicit session(const options& o);

    const options& settings() const { return options_; }
    std::vector<connection>& connections() { return connections_; }

    // `count` requests, as sent by one send.
    std::string_view requests(unsigned count) const {
        return std::string_view(batch_).substr(0, count * options_.request.size());
    }

    // `count` requests are passed to the kernel.
    void sent(connection& c, unsigned count, std::uint64_t now) {
        c.due += options_.one_reply ? 1 : count;
        if (c.probe == 0) {
            c.probe = c.due;
            c.since = now;
        }
    }

    // Processes received bytes; returns the number of requests that are to be sent now.
    unsigned received(connection& c, std::string_view bytes, std::uint64_t now);

    // The connection failed or was closed by the server; the run continues with the others.
    void lost(connection& c);

    // Called once per iteration: opens and closes the measured window. Returns true at its end.
    bool over(std::uint64_t now);

    // Prints one JSON object on stdout. Returns the exit code.
    int report(std::string_view engine_name) const;

private:
    struct clocks {
        std::uint64_t wall = 0, client_cpu = 0, server_cpu = 0;
    };
    clocks read_clocks(std::uint64_t now) const;
    // The largest relative deviation of a connection from the mean.
    double unfairness() const;
    // Connections that are open and have received no reply within the window.
    unsigned unserved() const;

    options options_;
    std::string batch_;
    std::vector<connection> connections_;
    std::size_t alive_ = 0;
    std::uint64_t begin_ = 0;
    std::uint64_t last_reply_ = 0;
    bool measuring_ = false;
    clocks opened_, closed_;
    std::uint64_t replies_ = 0;        // within the window
    std::uint64_t replies_before_ = 0; // during the warm-up
    std::uint64_t errors_ = 0;
    bool stalled_ = false;
    histogram latency_;
};

// The engines: send on every connection, receive, send again, until session::over. Both run on this
// thread. run_uring returns false without side effects if the kernel refuses a ring.
bool run_uring(session& s);
void run_epoll(session& s);

} // namespace load
