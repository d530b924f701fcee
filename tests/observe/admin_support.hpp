#pragma once

#include "support.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace coil_test {

/// A directory with a path for an admin socket.
class socket_place {
public:
    socket_place() { EXPECT_NE(::mkdtemp(directory_.data()), nullptr); }
    socket_place(const socket_place&) = delete;
    socket_place& operator=(const socket_place&) = delete;
    ~socket_place() {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }
    [[nodiscard]] std::string path() const { return directory_ + "/admin"; }
    [[nodiscard]] coil::io_context_options options(std::string name = {}) const {
        return with([&](coil::io_context_options& o) {
            o.admin_socket = path();
            o.name = std::move(name);
        });
    }

private:
    std::string directory_ = std::filesystem::temp_directory_path() / "coil-admin-XXXXXX";
};

/// A client, which is connected unless the server refused the connection.
class admin_client {
public:
    explicit admin_client(const std::string& path)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        ::sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        is_connected_ =
            ::connect(fd_, reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0;
    }
    admin_client(const admin_client&) = delete;
    admin_client& operator=(const admin_client&) = delete;
    ~admin_client() { ::close(fd_); }

    [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }
    void send(std::string_view text) const {
        EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<::ssize_t>(text.size()));
    }
    /// Receives everything until the end of the stream.
    [[nodiscard]] std::string rest() const {
        std::string all;
        std::array<char, 4096> part{};
        for (::ssize_t n = 0; (n = ::recv(fd_, part.data(), part.size(), 0)) > 0;) {
            all.append(part.data(), static_cast<std::size_t>(n));
        }
        return all;
    }

private:
    int fd_;
    bool is_connected_;
};

inline std::string get(const std::string& path, const std::string& target) {
    const admin_client client(path);
    EXPECT_TRUE(client.is_connected());
    client.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return client.rest();
}

/// The output of a command, which must succeed.
inline std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::array<char, 4096> part{};
    while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) {
        text.append(part.data(), n);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command << '\n' << text;
    return text;
}

} // namespace coil_test
