#pragma once

#include <coil/net/inet_address.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace adapter_test {

/// A TCP port of 127.0.0.1 on which nothing listens.
inline std::uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::socklen_t length = sizeof address;
    // NOLINTNEXTLINE(*-reinterpret-cast): the socket API takes sockaddr
    auto* generic = reinterpret_cast<::sockaddr*>(&address);
    if (fd < 0 || ::bind(fd, generic, length) != 0 || ::getsockname(fd, generic, &length) != 0) {
        throw std::runtime_error("no free port");
    }
    ::close(fd);
    return ntohs(address.sin_port);
}

/// Whether a connection to that port of 127.0.0.1 is accepted.
inline bool listens(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(*-reinterpret-cast): the socket API takes sockaddr
    const int result = ::connect(fd, reinterpret_cast<::sockaddr*>(&address), sizeof address);
    ::close(fd);
    return result == 0;
}

/// A folder in the temporary directory that is removed at the end.
class temporary_folder {
public:
    temporary_folder() {
        std::string name =
            (std::filesystem::temp_directory_path() / "coil-adapter-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("mkdtemp failed");
        }
        path_ = name;
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

struct server_options {
    ::uid_t user = 0;  ///< not 0: the server runs as this user (and group)
    ::gid_t group = 0; ///< not 0: the group
    int stop_signal = SIGTERM;
    std::chrono::seconds patience{30}; ///< until the port must accept connections
};

/// A third-party server, started on a loopback port for a test; it ends with this object, or with
/// the test's process. The constructor returns when the port accepts connections.
class server_process {
public:
    /// Starts argv, whose first element is found in PATH. Its output goes to `log`. Throws
    /// std::runtime_error, with the end of the log, if the port does not accept connections in
    /// time.
    server_process(std::vector<std::string> argv, std::uint16_t port, std::filesystem::path log,
                   server_options options = {})
        : argv_(std::move(argv)), port_(port), log_(std::move(log)), options_(options) {
        start();
    }
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;
    ~server_process() { end(options_.stop_signal); }

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }

    /// Ends the server without a shutdown, like a crash.
    void kill() { end(SIGKILL); }
    /// Starts it again after kill(). The server ends with the calling thread.
    void restart() {
        end(options_.stop_signal);
        start();
    }

private:
    void start() {
        std::vector<char*> args;
        for (std::string& arg : argv_) {
            args.push_back(arg.data());
        }
        args.push_back(nullptr);
        const ::pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ < 0) {
            throw std::runtime_error("fork failed");
        }
        if (pid_ == 0) {
            const int out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
            if (out < 0) {
                ::_exit(126);
            }
            ::dup2(out, STDOUT_FILENO);
            ::dup2(out, STDERR_FILENO);
            if ((options_.group != 0 && ::setgid(options_.group) != 0) ||
                (options_.user != 0 && ::setuid(options_.user) != 0)) {
                ::_exit(126);
            }
            // After setuid(), which clears this setting: see prctl(2).
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) {
                ::_exit(126);
            }
            ::execvp(args[0], args.data());
            ::_exit(127);
        }
        const auto until = std::chrono::steady_clock::now() + options_.patience;
        while (!listens(port_)) {
            const bool ended = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
            if (ended || std::chrono::steady_clock::now() > until) {
                if (ended) {
                    pid_ = 0;
                }
                end(SIGKILL);
                throw std::runtime_error(argv_[0] + " does not listen on port " +
                                         std::to_string(port_) + ":\n" + end_of_log());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    void end(int signal) {
        if (pid_ > 0) {
            ::kill(pid_, signal);
            ::waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }
    [[nodiscard]] std::string end_of_log() const {
        std::stringstream text;
        text << std::ifstream(log_).rdbuf();
        std::string all = text.str();
        return all.size() > 2000 ? all.substr(all.size() - 2000) : all;
    }

    std::vector<std::string> argv_;
    std::uint16_t port_;
    std::filesystem::path log_;
    server_options options_;
    ::pid_t pid_ = 0;
};

/// Whether a program is in PATH.
inline bool has_program(const std::string& name) {
    std::stringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(path, folder, ':');) {
        if (::access((folder + "/" + name).c_str(), X_OK) == 0) {
            return true;
        }
    }
    return false;
}

} // namespace adapter_test
