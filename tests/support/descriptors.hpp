#pragma once

#include "support/system.hpp"

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace coil_test {

[[noreturn]] inline void fail_with_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

/// An owned descriptor for code of a test that does not use coil.
class descriptor {
public:
    explicit descriptor(int fd = -1) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() { reset(); }

    void reset() noexcept {
        if (fd_ >= 0) {
            sys::close(fd_);
        }
        fd_ = -1;
    }
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

struct pipe_pair {
    pipe_pair() {
        int fds[2];
        if (sys::pipe2(fds, O_CLOEXEC) != 0) {
            fail_with_errno("pipe2");
        }
        in = descriptor{fds[0]};
        out = descriptor{fds[1]};
    }

    void put(std::string_view bytes) const {
        if (sys::write(out, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
            fail_with_errno("write");
        }
    }

    descriptor in;
    descriptor out;
};

/// The two ends of a connection; AF_UNIX, so that data has arrived when send() returns.
struct socket_pair {
    explicit socket_pair(int type = SOCK_STREAM) {
        int fds[2];
        if (sys::socketpair(type, fds) != 0) {
            fail_with_errno("socketpair");
        }
        a = descriptor{fds[0]};
        b = descriptor{fds[1]};
    }

    descriptor a;
    descriptor b;
};

/// A listening socket of 127.0.0.1 on a free port.
struct listener {
    listener() : socket(sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC)) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t length = sizeof address;
        auto* const a = reinterpret_cast<::sockaddr*>(&address);
        if (sys::bind(socket, a, length) != 0 || sys::listen(socket, 128) != 0 ||
            sys::getsockname(socket, a, &length) != 0) {
            fail_with_errno("listener");
        }
    }

    /// A client whose connection waits to be accepted.
    [[nodiscard]] descriptor connect() const {
        descriptor client{sys::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC)};
        if (sys::connect(client, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) !=
            0) {
            fail_with_errno("connect");
        }
        return client;
    }

    [[nodiscard]] std::uint16_t port() const { return ntohs(address.sin_port); }

    descriptor socket;
    ::sockaddr_in address{};
};

inline std::set<int> open_descriptors() {
    std::set<int> open;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const std::string name = entry.path().filename();
        int fd = -1;
        std::from_chars(name.data(), name.data() + name.size(), fd);
        open.insert(fd);
    }
    for (auto it = open.begin(); it != open.end();) {
        it = ::fcntl(*it, F_GETFD) < 0 ? open.erase(it) : std::next(it); // the iterator's own
    }
    return open;
}

/// The open file behind a descriptor. The number alone does not identify the file: as soon as it is
/// closed, another thread, such as the watchdog's, may open a file that gets the same number.
class open_file {
public:
    explicit open_file(int fd) : fd_(fd) {
        if (::fstat(fd, &status_) != 0) {
            fail_with_errno("fstat");
        }
    }

    /// Whether the descriptor still refers to this file.
    [[nodiscard]] bool is_open() const {
        struct ::stat now{};
        return ::fstat(fd_, &now) == 0 && now.st_dev == status_.st_dev &&
               now.st_ino == status_.st_ino;
    }

private:
    int fd_;
    struct ::stat status_{};
};

/// Whether `fd` is open. Use it only while no other thread can have opened a file with this number.
inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

} // namespace coil_test
