// An HTTP/1.1 server for the files of a folder.
//
//     http_files 8080 /var/www
//     http_files 8080 /var/www --connections 1000 --header 5000 --idle 30000
//
// It shows a server in which every resource has a limit, so that a slow or malicious client costs
// little: the number of connections, the size of a request's header, the time to send a header, the
// time between requests, and the time to receive each part of a response. On SIGUSR1 and at the end
// it prints how often each limit was reached. SIGTERM gives responses in progress a grace period.
//
// splice(2) moves the content from the page cache to the socket through a pipe, so a connection
// needs no buffer for it. openat2(2) with RESOLVE_BENEATH refuses paths that leave the folder.

#include "server.hpp"

#include <coil/coil.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

struct limits {
    std::size_t connections = 0;            // 0: as many as the descriptor limit allows
    std::size_t header_size = 8192;         // in bytes
    std::chrono::milliseconds header = 10s; // from the first byte of a request to its last
    std::chrono::milliseconds idle = 60s;   // between requests
    std::chrono::milliseconds send = 30s;   // for each part of a response
    std::chrono::milliseconds grace = 5s;   // for responses in progress at a stop
};

constexpr std::size_t part_size = 65536; // of a response, in bytes

struct counters {
    std::atomic<std::uint64_t> requests = 0;
    std::atomic<std::uint64_t> header_too_long = 0;
    std::atomic<std::uint64_t> header_too_slow = 0;
    std::atomic<std::uint64_t> reader_too_slow = 0;
};

struct site {
    fs::file root;
    limits limit;
    counters count = {};
};

struct request {
    std::string method;
    std::string target;
    bool keep_alive = true;
    bool has_body = false;
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

/// The value of the header field `name`, without surrounding blanks; nullopt for other fields.
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        !equal_ignoring_case(line.substr(0, name.size()), name)) {
        return std::nullopt;
    }
    line.remove_prefix(name.size() + 1);
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos
               ? std::string_view()
               : line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

/// The parts of a line such as "GET /path HTTP/1.1"; nullopt if it is malformed.
std::optional<request> parse_request_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) {
        return std::nullopt;
    }
    const std::string_view version = line.substr(last + 1);
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        return std::nullopt;
    }
    return request{std::string(line.substr(0, first)),
                   std::string(line.substr(first + 1, last - first - 1)), version == "HTTP/1.1"};
}

using reader = buffered_reader<net::socket&>;

/// The next request; nullopt if it is malformed, or the client has disconnected.
task<std::optional<request>> read_request(reader& from, std::size_t size) {
    std::optional<request> asked;
    while (const auto line = co_await from.lines(size).next()) {
        size -= std::min(size, line->size() + 2);
        if (!asked) {
            asked = parse_request_line(*line);
            if (!asked) {
                co_return std::nullopt;
            }
        } else if (line->empty()) {
            co_return asked;
        } else if (const auto connection = value_of(*line, "Connection")) {
            asked->keep_alive = equal_ignoring_case(*connection, "keep-alive") ||
                                (asked->keep_alive && !equal_ignoring_case(*connection, "close"));
        } else if (const auto length = value_of(*line, "Content-Length")) {
            asked->has_body = *length != "0";
        } else if (value_of(*line, "Transfer-Encoding")) {
            asked->has_body = true;
        }
    }
    co_return std::nullopt;
}

/// The file name of a request's target: "/a%20b/?query" is "a b/index.html". Returns nullopt if the
/// target is not valid.
std::optional<std::string> file_name_of(std::string_view target) {
    if (!target.starts_with('/')) {
        return std::nullopt;
    }
    target = target.substr(0, target.find_first_of("?#"));
    std::string name = ".";
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] != '%') {
            name += target[i];
            continue;
        }
        unsigned char byte = 0;
        const char* const end = target.data() + std::min(i + 3, target.size());
        const auto [rest, error] = std::from_chars(target.data() + i + 1, end, byte, 16);
        if (error != std::errc() || rest != target.data() + i + 3 || byte == 0) {
            return std::nullopt;
        }
        name += static_cast<char>(byte);
        i += 2;
    }
    if (name.ends_with('/')) {
        name += "index.html";
    }
    return name;
}

std::string_view type_of(std::string_view name) {
    static constexpr std::pair<std::string_view, std::string_view> types[] = {
        {".html", "text/html; charset=utf-8"},
        {".txt", "text/plain; charset=utf-8"},
        {".css", "text/css"},
        {".js", "text/javascript"},
        {".png", "image/png"},
        {".svg", "image/svg+xml"},
    };
    for (const auto& [ending, type] : types) {
        if (name.ends_with(ending)) {
            return type;
        }
    }
    return "application/octet-stream";
}

struct found_file {
    fs::file file;
    ::off64_t size = 0;
    int status = 404;
    std::string_view type = "text/plain"; // of an error's text
};

task<found_file> find(const site& of, const std::string& target) {
    found_file found;
    const std::optional<std::string> name = file_name_of(target);
    if (!name) {
        found.status = 400;
        co_return found;
    }
    ::open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK; // a FIFO must not make the open wait
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const int fd = co_await io::openat2(of.root.native_handle(), name->c_str(), &how, sizeof how);
    if (fd < 0) {
        found.status = fd == -EMFILE || fd == -ENFILE ? 503 : 404;
        co_return found;
    }
    fs::file file(fd);
    struct ::stat status{};
    if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        found = {std::move(file), status.st_size, 200, type_of(*name)};
    }
    co_return found;
}

std::string_view reason_of(int status) {
    switch (status) {
    case 200:
        return "200 OK";
    case 400:
        return "400 Bad Request";
    case 404:
        return "404 Not Found";
    case 405:
        return "405 Method Not Allowed";
    case 408:
        return "408 Request Timeout";
    case 431:
        return "431 Request Header Fields Too Large";
    default:
        return "503 Service Unavailable";
    }
}

/// Sends the whole text within the limit for one part. Returns 0 or -errno.
task<int> send_part(net::socket& peer, std::string text, std::chrono::milliseconds limit) {
    const int n = co_await timeout(peer.send_all(text), limit);
    co_return std::min(n, 0);
}

task<io_result> splice_all(int from, int to, std::size_t size) {
    while (size > 0) {
        const int n = co_await io::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE);
        if (n <= 0) {
            co_return io_result(n == 0 ? -EIO : n);
        }
        size -= static_cast<std::size_t>(n);
    }
    co_return io_result(0);
}

/// Sends the content of a file, a part at a time, so that the client has to take each part within
/// the limit. Returns 0 or -errno.
task<int> send_file(net::socket& peer, const found_file& file, std::chrono::milliseconds limit) {
    const auto [out, in] = make_pipe();
    ::off64_t at = 0;
    while (at < file.size) {
        const auto wanted = std::min(part_size, static_cast<std::size_t>(file.size - at));
        const int n = co_await io::splice(file.file.native_handle(), &at, in.native_handle(),
                                          nullptr, wanted, SPLICE_F_MOVE);
        if (n <= 0) {
            co_return n == 0 ? -EIO : n; // the file has become shorter
        }
        const int sent = co_await timeout(
            splice_all(out.native_handle(), peer.native_handle(), static_cast<std::size_t>(n)),
            limit);
        if (sent < 0) {
            co_return sent;
        }
    }
    co_return 0;
}

/// Sends the response. Returns 0, or -errno if the connection has become unusable.
task<int> answer(net::socket& peer, site& of, const request& asked, bool keep_alive) {
    found_file found;
    if (asked.method != "GET" && asked.method != "HEAD") {
        found.status = 405;
    } else {
        found = co_await find(of, asked.target);
    }
    const std::string body = found.status == 200 ? "" : std::string(reason_of(found.status)) + "\n";
    const std::size_t size = found.file ? static_cast<std::size_t>(found.size) : body.size();
    std::string head = "HTTP/1.1 " + std::string(reason_of(found.status)) +
                       "\r\nContent-Length: " + std::to_string(size) +
                       "\r\nContent-Type: " + std::string(found.type) +
                       "\r\nConnection: " + (keep_alive ? "keep-alive" : "close") + "\r\n\r\n";
    const bool has_content = asked.method != "HEAD";
    const int sent =
        co_await send_part(peer, std::move(head) + (has_content ? body : ""), of.limit.send);
    if (sent < 0 || !found.file || !has_content) {
        co_return sent;
    }
    co_return co_await send_file(peer, found, of.limit.send);
}

/// Waits for the first byte of a request. The wait ends immediately when the server stops.
task<bool> next_request_begins(net::socket& peer, reader& from, std::chrono::milliseconds idle) {
    char first;
    co_return !from.buffered().empty() ||
        co_await timeout(peer.recv({&first, 1}, MSG_PEEK), idle) > 0;
}

/// The next request, or nullopt if the connection ends. If the client is too slow, or its header is
/// too long, sends an error first.
task<std::optional<request>> next_request(net::socket& peer, reader& from, site& of,
                                          inplace_stop_token stopping) {
    if (!co_await with_stop_token(next_request_begins(peer, from, of.limit.idle), stopping)) {
        co_return std::nullopt;
    }
    int status = 400;
    try {
        auto asked = co_await timeout(read_request(from, of.limit.header_size), of.limit.header);
        if (asked && !asked->has_body) {
            co_return asked;
        }
    } catch (const std::system_error& e) {
        if (e.code() == std::errc::timed_out) {
            status = 408;
            ++of.count.header_too_slow;
        } else if (e.code() == std::errc::message_size) {
            status = 431;
            ++of.count.header_too_long;
        } else {
            co_return std::nullopt; // the connection was reset, or the server is stopping
        }
    }
    co_await send_part(peer,
                       "HTTP/1.1 " + std::string(reason_of(status)) +
                           "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                       of.limit.send);
    co_return std::nullopt;
}

task<> session(net::socket peer, inplace_stop_token stopping, site& of) {
    (void)peer.set_no_delay(true);
    reader from(peer, 1024);
    while (const auto asked = co_await next_request(peer, from, of, stopping)) {
        ++of.count.requests;
        const bool keep_alive = asked->keep_alive && !stopping.stop_requested();
        const int sent = co_await answer(peer, of, *asked, keep_alive);
        if (sent == -ETIMEDOUT) {
            ++of.count.reader_too_slow;
            (void)peer.set_linger(0s); // the kernel discards unsent data immediately
        }
        if (sent < 0 || !keep_alive) {
            break;
        }
    }
}

std::string metrics_of(const counters& count, const net::serve_meter& meter) {
    return to_string(meter.metrics()) + "requests: " + std::to_string(count.requests) +
           ", header too long: " + std::to_string(count.header_too_long) +
           ", header too slow: " + std::to_string(count.header_too_slow) +
           ", reader too slow: " + std::to_string(count.reader_too_slow);
}

} // namespace

int main(int argc, char** argv) try {
    limits limit;
    std::vector<std::string> words;
    std::uint16_t port = 0;
    if (!example::read_options(argc, argv,
                               {{"--connections", limit.connections},
                                {"--header-size", limit.header_size},
                                {"--header", limit.header},
                                {"--idle", limit.idle},
                                {"--send", limit.send},
                                {"--grace", limit.grace}},
                               words) ||
        words.size() != 2 || !example::parse_number(words[0], port)) {
        std::fprintf(stderr,
                     "usage: http_files PORT FOLDER [--connections N] [--header-size BYTES] "
                     "[--header MS] [--idle MS] [--send MS] [--grace MS]\n");
        return 2;
    }
    const example::server_signals signals; // before the runtime starts threads
    runtime rt;
    if (limit.connections == 0) {
        // A connection needs its socket, a file and a pipe. At the limit, each context may hold one
        // more connection, which waits.
        limit.connections = example::connections_for(4, 32 + rt.size() * 12);
    }
    site files{fs::file(::open(words[1].c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), limit};
    if (!files.root) {
        throw std::system_error(errno, std::generic_category(), words[1]);
    }
    const auto meter = std::make_shared<net::serve_meter>();
    auto server = net::serve(rt, port,
                             [&files](net::socket peer, inplace_stop_token stopping) {
                                 return session(std::move(peer), stopping, files);
                             },
                             {.max_connections = limit.connections,
                              .grace = limit.grace,
                              .hard_deadline = 1s,
                              .on_listening = example::say_where,
                              .meter = meter});
    rt.block_on(example::run_until_stopped(std::move(server), signals,
                                           [&] { return metrics_of(files.count, *meter); }));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "http_files: %s\n", e.what());
    return 1;
}
