#include "session.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace load {
namespace {

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "load: %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

std::uint64_t read_clock(clockid_t id) {
    timespec t{};
    if (clock_gettime(id, &t) != 0) {
        fail("clock_gettime (has the server ended?)");
    }
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

// The CPU-time clock of another process, in nanoseconds, including threads and io-wq workers
// (clock_getcpuclockid).
std::uint64_t cpu_of(int pid) {
    clockid_t id{};
    errno = clock_getcpuclockid(pid, &id);
    if (errno != 0) {
        fail("the server's CPU clock");
    }
    return read_clock(id);
}

int connect_one(const options& o) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(o.port);
    if (inet_pton(AF_INET, o.host.c_str(), &address.sin_addr) != 1) {
        errno = EINVAL;
        fail("--host takes an IPv4 address");
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail("socket");
    }
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        fail("connect");
    }
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

void raise_descriptor_limit(unsigned wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        fail("getrlimit");
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        fail("setrlimit");
    }
    if (limit.rlim_cur < wanted + 16) {
        std::fprintf(
            stderr,
            "load: %u connections need a higher hard limit of open files than %llu (ulimit -Hn)\n",
            wanted, static_cast<unsigned long long>(limit.rlim_cur));
        std::exit(1);
    }
}

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

} // namespace

std::uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

session::session(const options& o) : options_(o) {
    for (unsigned i = 0; i < o.pipeline; ++i) {
        batch_ += o.request;
    }
    raise_descriptor_limit(o.connections);
    connections_.resize(o.connections);
    for (connection& c : connections_) {
        c.fd = connect_one(o);
    }
    alive_ = connections_.size();
    begin_ = last_reply_ = now_ns();
}

unsigned session::received(connection& c, std::string_view bytes, std::uint64_t now) {
    if (bytes.front() == '-') {
        ++errors_;
    }
    const auto lines = static_cast<unsigned>(std::count(bytes.begin(), bytes.end(), '\n'));
    if (lines > c.due) {
        ++errors_;
    }
    const unsigned answered = std::min(lines, c.due);
    c.due -= answered;
    last_reply_ = now;
    if (measuring_) {
        replies_ += answered;
        c.had += answered;
        if (answered > 0 && answered >= c.probe) {
            latency_.add(now - c.since);
        }
    } else {
        replies_before_ += answered;
    }
    c.probe -= std::min(answered, c.probe);
    if (options_.sliding) {
        return answered;
    }
    return c.due == 0 && answered > 0 ? options_.pipeline : 0;
}

void session::lost(connection& c) {
    if (c.fd < 0) {
        return;
    }
    close(c.fd);
    c.fd = -1;
    ++errors_;
    --alive_;
}

session::clocks session::read_clocks(std::uint64_t now) const {
    return {now, read_clock(CLOCK_PROCESS_CPUTIME_ID),
            options_.server_pid > 0 ? cpu_of(options_.server_pid) : 0};
}

bool session::over(std::uint64_t now) {
    stalled_ = alive_ == 0 || seconds(now - last_reply_) > options_.give_up;
    if (!measuring_) {
        if (!stalled_ && seconds(now - begin_) < options_.warm_up) {
            return false;
        }
        // A reply to a request sent before the window counts: about as many are unanswered at its
        // end.
        measuring_ = true;
        opened_ = read_clocks(now);
        if (!stalled_) {
            return false;
        }
    }
    const bool enough = options_.requests != 0 && replies_ >= options_.requests;
    if (!stalled_ && !enough && seconds(now - opened_.wall) < options_.seconds) {
        return false;
    }
    closed_ = read_clocks(now);
    return true;
}

double session::unfairness() const {
    const double mean = static_cast<double>(replies_) / static_cast<double>(connections_.size());
    double worst = 0;
    for (const connection& c : connections_) {
        worst = std::max(worst, std::abs(static_cast<double>(c.had) - mean));
    }
    return mean > 0 ? worst / mean : 0;
}

unsigned session::unserved() const {
    return static_cast<unsigned>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const connection& c) { return c.fd >= 0 && c.had == 0; }));
}

int session::report(std::string_view engine_name) const {
    const double wall = seconds(closed_.wall - opened_.wall);
    const double client = seconds(closed_.client_cpu - opened_.client_cpu);
    const double server = seconds(closed_.server_cpu - opened_.server_cpu);
    const auto count = static_cast<double>(replies_);
    const std::uint64_t all_replies = replies_ + replies_before_;
    const auto us = [&](double share) {
        return static_cast<double>(latency_.percentile(share)) / 1000;
    };
    std::printf("{\"engine\": \"%.*s\", \"connections\": %u, \"pipeline\": %u, \"seconds\": %.6f, "
                "\"requests\": %llu, "
                "\"requests_per_second\": %.1f, ",
                static_cast<int>(engine_name.size()), engine_name.data(), options_.connections,
                options_.pipeline, wall, static_cast<unsigned long long>(replies_),
                wall > 0 ? count / wall : 0);
    std::printf("\"unfairness\": %.4f, \"unserved\": %u, ", unfairness(), unserved());
    std::printf(
        "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, \"errors\": "
        "%llu, "
        "\"stalled\": %s, \"total_requests\": %llu, \"client_cpu_s\": %.6f, \"client_busy\": %.4f",
        us(0.50), us(0.99), us(0.999), static_cast<double>(latency_.max()) / 1000,
        static_cast<unsigned long long>(errors_), stalled_ ? "true" : "false",
        static_cast<unsigned long long>(all_replies), client, wall > 0 ? client / wall : 0);
    if (options_.server_pid > 0) {
        std::printf(
            ", \"server_cpu_s\": %.9f, \"server_busy\": %.4f, \"server_cpu_us_per_request\": %.4f",
            server, wall > 0 ? server / wall : 0, count > 0 ? server * 1e6 / count : 0);
    }
    std::printf("}\n");
    return errors_ == 0 && !stalled_ && replies_ > 0 ? 0 : 1;
}

} // namespace load
