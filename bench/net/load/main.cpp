// The saturating client: keeps a request in flight on every connection and prints its measurements
// as one JSON object.

#include "session.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace load {
namespace {

constexpr const char* usage = R"(usage: load PORT [options]
Sends PING on every connection, waits for the reply, and sends again; prints one JSON object.

  -c, --connections N   (50)
  --seconds S           length of the measured window (2)
  --requests N          ends the window earlier
  --warm-up S           before the window (0.5)
  --pipeline N          requests in flight on a connection (1): sent together, after all replies to
                        the previous ones
  --sliding             sends as many requests as replies were received, at once
  --message BYTES       requests of this size, ending in '\n', in place of PING
  --one-reply           the server answers each receive once, however many requests it holds
  --batch N             replies awaited at once (a quarter of the connections, at most 8)
  --inline              "PING\r\n" in place of the array "*1\r\n$4\r\nPING\r\n"
  --server-pid PID      also measure this process's CPU time, over the same window
  --engine auto|uring|epoll
  --host ADDRESS        IPv4 (127.0.0.1)
  --give-up S           fail after S seconds without a reply (10)
)";

[[noreturn]] void misuse(const std::string& what) {
    std::fprintf(stderr, "load: %s\n%s", what.c_str(), usage);
    std::exit(2);
}

double number(std::string_view option, const char* text, double max) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0) || value > max) {
        misuse("bad value for " + std::string(option) + ": " + text);
    }
    return value;
}

} // namespace

options parse_options(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "--help" || name == "-h") {
            std::fputs(usage, stdout);
            std::exit(0);
        }
        if (name == "--one-reply") {
            o.one_reply = true;
            continue;
        }
        if (name == "--sliding") {
            o.sliding = true;
            continue;
        }
        if (name == "--inline") {
            o.request = "PING\r\n";
            continue;
        }
        if (name.front() != '-') {
            o.port = static_cast<std::uint16_t>(number("PORT", argv[i], 65535));
            continue;
        }
        if (i + 1 == argc) {
            misuse("no value for " + std::string(name));
        }
        const char* value = argv[++i];
        if (name == "-c" || name == "--connections") {
            o.connections = static_cast<unsigned>(number(name, value, 30000));
        } else if (name == "--seconds") {
            o.seconds = number(name, value, 3600);
        } else if (name == "--requests") {
            o.requests = static_cast<std::uint64_t>(number(name, value, 1e15));
        } else if (name == "--warm-up") {
            o.warm_up = number(name, value, 3600);
        } else if (name == "--give-up") {
            o.give_up = number(name, value, 3600);
        } else if (name == "--batch") {
            o.batch = static_cast<unsigned>(number(name, value, 30000));
        } else if (name == "--pipeline") {
            o.pipeline = static_cast<unsigned>(number(name, value, 1024));
        } else if (name == "--message") {
            const auto size = static_cast<std::size_t>(number(name, value, 65536));
            o.request = std::string(size > 0 ? size - 1 : 0, 'm') + '\n';
        } else if (name == "--server-pid") {
            o.server_pid = static_cast<int>(number(name, value, 1 << 30));
        } else if (name == "--host") {
            o.host = value;
        } else if (name == "--engine") {
            const std::string_view which = value;
            if (which != "auto" && which != "uring" && which != "epoll") {
                misuse("--engine auto|uring|epoll");
            }
            o.use = which == "uring"   ? engine::uring
                    : which == "epoll" ? engine::epoll
                                       : engine::automatic;
        } else {
            misuse("unknown option: " + std::string(name));
        }
    }
    if (o.port == 0 || o.connections == 0 || o.pipeline == 0) {
        misuse("PORT, connections and pipeline must be positive");
    }
    return o;
}

} // namespace load

int main(int argc, char** argv) {
    load::session s{load::parse_options(argc, argv)};
    const char* name = "uring";
    if (s.settings().use == load::engine::epoll || !load::run_uring(s)) {
        name = "epoll";
        load::run_epoll(s);
    }
    return s.report(name);
}
