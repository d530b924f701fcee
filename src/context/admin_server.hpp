#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace coil {
class io_context;
}

namespace coil::detail {

struct context_snapshot;

/// Reports over HTTP/1.0, on a Unix socket, what the contexts of this process are doing
/// (docs/guide/observing.md). It has a thread of its own, so that it answers while a coroutine
/// blocks a context, and uses blocking calls with time limits. It serves one connection at a time,
/// which is enough for people and monitoring systems.
class admin_server {
public:
    /// Binds `path`, and replaces a socket there that no process listens on.
    explicit admin_server(std::string path);
    admin_server(const admin_server&) = delete;
    admin_server& operator=(const admin_server&) = delete;
    ~admin_server();

    /// The number of servers in this process, each of which has one thread.
    [[nodiscard]] static std::size_t count() noexcept { return count_; }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    void add(io_context& context);
    /// Returns whether `context` was the last one.
    bool remove(io_context& context) noexcept;

private:
    struct reply {
        std::string_view status = "200 OK";
        std::string_view type = "text/plain; charset=utf-8";
        std::string body{};
    };

    void listen();
    void close() noexcept;
    void run() noexcept;
    void serve(int connection) const;
    [[nodiscard]] reply answer(std::string_view target) const;
    [[nodiscard]] std::vector<context_snapshot> take_snapshots(std::size_t limit) const;
    [[nodiscard]] std::string metrics_page() const;
    [[nodiscard]] std::string process_page() const;

    inline static constinit std::atomic<std::size_t> count_ = 0;

    const std::string path_;
    int listener_ = -1;
    int stop_ = -1;     // an eventfd
    ::ino_t inode_ = 0; // of the socket file
    const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    mutable std::mutex mutex_; // held while a request reads the contexts
    std::vector<io_context*> contexts_;
    std::thread thread_;
};

} // namespace coil::detail
