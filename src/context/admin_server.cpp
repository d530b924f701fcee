#include "admin_server.hpp"

#include "stall_watchdog.hpp"
#include "task_snapshot.hpp"
#include "task_writing.hpp"
#include "thread_name.hpp"
#include "watched_pool.hpp"

#include <coil/base/page_size.hpp>
#include <coil/base/service_thread_start.hpp>
#include <coil/context/detail/dump_registration.hpp>
#include <coil/context/io_context.hpp>
#include <coil/context/prometheus.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace coil::detail {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds longest_request{2}; // the limit for a whole request to arrive
constexpr std::chrono::seconds longest_reply{5};
constexpr std::size_t most_request_bytes = 4096;

[[noreturn]] void fail(int error, const std::string& path, const char* what) {
    throw std::system_error(error, std::generic_category(),
                            "coil: the admin socket '" + path + "' " + what);
}

::sockaddr_un address_of(const std::string& path) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos) {
        fail(ENAMETOOLONG, path, "is not the path of a socket");
    }
    path.copy(address.sun_path, path.size());
    return address;
}

int bind_to(int socket, const ::sockaddr_un& address) noexcept {
    return ::bind(socket, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0
               ? 0
               : errno;
}

/// Whether `address` is a socket file on which no process listens, left by one that did not remove
/// it.
bool is_stale(const ::sockaddr_un& address) noexcept {
    struct ::stat status{};
    if (::lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool refused =
        probe >= 0 &&
        ::connect(probe, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED;
    ::close(probe);
    return refused;
}

/// Waits until `fd` is ready. Returns false at `deadline`, and if the thread is asked to end.
bool wait_for(int fd, short events, int stop, clock::time_point deadline) noexcept {
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count();
        std::array<::pollfd, 2> set{{{fd, events, 0}, {stop, POLLIN, 0}}};
        const int ready = ::poll(set.data(), set.size(), static_cast<int>(std::max(left, 0L)));
        if (ready > 0) {
            return set[1].revents == 0;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

/// The first line of a request; empty if no complete request arrives in time.
std::string read_request(int connection, int stop) {
    const auto deadline = clock::now() + longest_request;
    std::string text;
    std::array<char, 1024> part{};
    while (text.size() < most_request_bytes) {
        const ::ssize_t n = ::recv(connection, part.data(), part.size(), 0);
        if (n > 0) {
            text.append(part.data(), static_cast<std::size_t>(n));
            // The request is read to its end: closing a socket with unread bytes resets the
            // connection.
            if (text.find("\r\n\r\n") != std::string::npos ||
                text.find("\n\n") != std::string::npos) {
                return text.substr(0, text.find_first_of("\r\n"));
            }
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
                   !wait_for(connection, POLLIN, stop, deadline)) {
            return {};
        }
    }
    return {};
}

void send_all(int connection, int stop, std::string_view text) noexcept {
    const auto deadline = clock::now() + longest_reply;
    while (!text.empty()) {
        const ::ssize_t n = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
        if (n >= 0) {
            text.remove_prefix(static_cast<std::size_t>(n));
        } else if ((errno != EAGAIN && errno != EINTR) ||
                   !wait_for(connection, POLLOUT, stop, deadline)) {
            return;
        }
    }
}

/// Whether the peer is this user or root. The mode of the socket file admits no others, but it may
/// be changed.
bool is_permitted(int connection) noexcept {
    ::ucred peer{};
    ::socklen_t size = sizeof peer;
    return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == ::geteuid());
}

std::size_t entries_of(const char* directory) noexcept {
    std::error_code ignored;
    const std::filesystem::directory_iterator all(directory, ignored);
    return ignored ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// The number after `limit=` in the query of a target.
std::size_t limit_of(std::string_view query) noexcept {
    std::size_t limit = io_context::default_dump_limit;
    if (const auto at = query.find("limit="); at != std::string_view::npos) {
        const std::string_view number = query.substr(at + std::strlen("limit="));
        std::from_chars(number.data(), number.data() + number.size(), limit);
    }
    return limit;
}

} // namespace

admin_server::admin_server(std::string path) : path_(std::move(path)) {
    try {
        listen();
        stop_ = ::eventfd(0, EFD_CLOEXEC);
        if (stop_ < 0) {
            fail(errno, path_, "cannot be served");
        }
        const service_thread_start inherited;
        thread_ = std::thread([this] { run(); });
        ++count_;
    } catch (...) {
        close();
        throw;
    }
}

admin_server::~admin_server() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop_, &one, sizeof one));
    thread_.join();
    --count_;
    close();
}

void admin_server::listen() {
    const ::sockaddr_un address = address_of(path_);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // On Linux the file gets the mode of the socket, so there is no moment at which other users may
    // connect.
    if (listener_ < 0 || ::fchmod(listener_, S_IRUSR | S_IWUSR) != 0) {
        fail(errno, path_, "cannot be made");
    }
    int error = bind_to(listener_, address);
    if (error == EADDRINUSE && is_stale(address) && ::unlink(address.sun_path) == 0) {
        error = bind_to(listener_, address);
    }
    if (error == EADDRINUSE) {
        fail(error, path_, "belongs to another program, or is another file");
    }
    if (error != 0) {
        fail(error, path_, "cannot be bound");
    }
    struct ::stat status{};
    if (::lstat(address.sun_path, &status) == 0) {
        inode_ = status.st_ino;
    }
    if (::listen(listener_, 16) != 0) {
        fail(errno, path_, "cannot be listened on");
    }
}

void admin_server::close() noexcept {
    // Another program may have replaced the file at this path.
    struct ::stat status{};
    if (inode_ != 0 && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
    for (const int fd : {listener_, stop_}) {
        if (fd >= 0) {
            ::close(fd);
        }
    }
}

void admin_server::add(io_context& context) {
    const std::scoped_lock lock(mutex_);
    contexts_.push_back(&context);
}

bool admin_server::remove(io_context& context) noexcept {
    const std::scoped_lock lock(mutex_);
    std::erase(contexts_, &context);
    return contexts_.empty();
}

void admin_server::run() noexcept {
    name_this_thread("coil-admin");
    constexpr auto for_ever = std::chrono::hours(24);
    for (;;) {
        const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection >= 0) {
            if (is_permitted(connection)) {
                try {
                    serve(connection);
                } catch (const std::exception& error) {
                    std::fprintf(stderr, "coil: no answer on the admin socket: %s\n", error.what());
                }
            }
            ::close(connection);
        } else if (errno == EAGAIN) {
            static_cast<void>(wait_for(listener_, POLLIN, stop_, clock::now() + for_ever));
        } else { // no descriptor left: try again later
            static_cast<void>(
                wait_for(-1, 0, stop_, clock::now() + std::chrono::milliseconds(100)));
        }
        ::pollfd stop{stop_, POLLIN, 0};
        if (::poll(&stop, 1, 0) > 0) {
            return;
        }
    }
}

void admin_server::serve(int connection) const {
    const std::string line = read_request(connection, stop_);
    constexpr std::string_view method = "GET ";
    if (line.empty()) {
        return;
    }
    reply text{.status = "400 Bad Request", .body = "the requests are GET requests of HTTP\n"};
    if (line.starts_with(method)) {
        const std::string_view rest = std::string_view(line).substr(method.size());
        text = answer(rest.substr(0, rest.find(' ')));
    }
    std::string all = "HTTP/1.0 ";
    all.append(text.status).append("\r\nContent-Type: ").append(text.type);
    all += "\r\nContent-Length: " + std::to_string(text.body.size());
    all += "\r\nConnection: close\r\n\r\n";
    all += text.body;
    send_all(connection, stop_, all);
}

admin_server::reply admin_server::answer(std::string_view target) const {
    const std::size_t end = target.find('?');
    const std::string_view path = target.substr(0, end);
    const std::string_view query = end < target.size() ? target.substr(end) : "";
    if (path == "/metrics") {
        return {.type = "text/plain; version=0.0.4", .body = metrics_page()};
    }
    if (path == "/process.json") {
        return {.type = "application/json", .body = process_page()};
    }
    if (path == "/tasks") {
        return {.body = to_text(take_snapshots(limit_of(query)))};
    }
    if (path == "/tasks.json") {
        return {.type = "application/json", .body = to_json(take_snapshots(limit_of(query)))};
    }
    if (path == "/stalls.json") {
        return {.type = "application/json", .body = stall_watchdog::instance().stalls_json()};
    }
    const bool is_index = path == "/";
    return {.status = is_index ? "200 OK" : "404 Not Found",
            .body = "/metrics       metrics of all contexts and pools, for Prometheus\n"
                    "/process.json  the process\n"
                    "/stalls.json   what has blocked contexts: reports of the watchdog\n"
                    "/tasks         what the tasks wait for; ?limit=N\n"
                    "/tasks.json    the same\n"};
}

std::vector<context_snapshot> admin_server::take_snapshots(std::size_t limit) const {
    const std::scoped_lock lock(mutex_);
    const dumps_paused by_others;
    std::vector<context_snapshot> all;
    all.reserve(contexts_.size());
    for (io_context* const context : contexts_) {
        all.push_back(take_snapshot(context->loop(), limit));
    }
    return all;
}

std::string admin_server::metrics_page() const {
    std::vector<labelled_metrics> all;
    {
        const std::scoped_lock lock(mutex_);
        for (const io_context* const context : contexts_) {
            const std::string& given = context->options().name;
            const std::string name = given.empty() ? "io_context" : given;
            const auto same = std::count_if(all.begin(), all.end(), [&](const labelled_metrics& m) {
                return m.labels.back().value == name;
            });
            // The Prometheus format forbids two series with the same name and labels.
            all.push_back({context->metrics(), {{"context", name}}});
            if (same > 0) {
                all.back().labels.insert(all.back().labels.begin(),
                                         {"number", std::to_string(same + 1)});
            }
        }
    }
    std::string page;
    write_prometheus(page, all);
    write_pools(page);
    return page;
}

std::string admin_server::process_page() const {
    ::rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    std::size_t pages = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    std::string text = R"({"pid":)" + std::to_string(::getpid()) + R"(,"name":)";
    append_quoted(text, program_invocation_short_name);
    text += R"(,"uptime_s":)";
    append_seconds(text, std::chrono::duration<double>(clock::now() - since_).count());
    text += R"(,"descriptors":)" + std::to_string(entries_of("/proc/self/fd"));
    text += R"(,"descriptor_limit":)" + std::to_string(files.rlim_cur);
    text += R"(,"threads":)" + std::to_string(entries_of("/proc/self/task"));
    text += R"(,"resident_bytes":)" + std::to_string(resident * page_size());
    return text + "}\n";
}

} // namespace coil::detail
