#pragma once

#include "support/run.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

namespace coil_test {

/// Two connected Unix sockets.
struct connection {
    connection() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() {
        ::close(ends[0]);
        ::close(ends[1]);
    }
    int ends[2]{};
};

inline std::string hex(const void* p) {
    std::ostringstream text;
    text << p;
    return text.str();
}

/// Both dumps of a context that has run for a while.
struct dumps {
    std::string text;
    std::string json;
};
inline coil::task<> take_dumps(coil::io_context& ctx, dumps& both) {
    co_await coil::sleep_for(std::chrono::milliseconds(1));
    both.text = ctx.dump_tasks();
    both.json = ctx.dump_tasks_json();
    ctx.stop();
}
inline dumps dumps_of(coil::io_context& ctx) {
    dumps both;
    ctx.co_spawn(take_dumps(ctx, both));
    ctx.run();
    return both;
}
inline std::string dump_of(coil::io_context& ctx) { return dumps_of(ctx).text; }

/// What Python's JSON parser finds in a dump: a line for each context, scope and task.
inline std::string parsed(const std::string& json) {
    std::array<char, 32> path{"/tmp/coil-dump-XXXXXX"};
    const int fd = ::mkstemp(path.data());
    std::string_view rest = json;
    while (fd >= 0 && !rest.empty()) {
        const ::ssize_t n = ::write(fd, rest.data(), rest.size());
        rest.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : rest.size());
    }
    ::close(fd);
    const std::string command = "python3 '" CHECK_DUMP "' '" + std::string(path.data()) + "' 2>&1";
    std::string lines;
    if (std::FILE* const out = ::popen(command.c_str(), "r")) {
        std::array<char, 4096> part{};
        while (const std::size_t n = std::fread(part.data(), 1, part.size(), out)) {
            lines.append(part.data(), n);
        }
        ::pclose(out);
    }
    ::unlink(path.data());
    return lines;
}

inline std::size_t count_of(std::string_view text, std::string_view what) {
    std::size_t count = 0;
    for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) {
        ++count;
    }
    return count;
}

} // namespace coil_test
