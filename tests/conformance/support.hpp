#pragma once

#include "conformance/machines.hpp"

#include <coil/coil.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

// Helpers for the conformance tests. They perform I/O through coil::io only.

namespace conformance {

using coil::task;
using namespace std::chrono_literals;
namespace io = coil::io;

/// Awaits `op`, whose result must be `wanted`. (GCC 14 does not support an await in a macro's
/// arguments.)
template <class Operation>
task<> gives(Operation op, long wanted, const char* why = "",
             std::source_location at = std::source_location::current()) {
    const long result = co_await std::move(op);
    if (result != wanted) {
        ADD_FAILURE_AT(at.file_name(), static_cast<int>(at.line()))
            << result << ", not " << wanted << (*why != '\0' ? ": " : "") << why;
    }
}

/// Awaits `op` and returns its result: for the arguments of macros and other expressions in which
/// GCC 14 does not support co_await.
template <class Operation>
task<int> result_of(Operation op) {
    co_return co_await std::move(op);
}

inline std::int64_t now_ns() { return coil::detail::required_loop().now_ns(); }

struct address {
    ::sockaddr_in in{};
    ::socklen_t length = sizeof in;

    address() {
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    explicit address(std::uint16_t port) : address() { in.sin_port = htons(port); }
    ::sockaddr* get() { return reinterpret_cast<::sockaddr*>(&in); }
    [[nodiscard]] const ::sockaddr* get() const { return reinterpret_cast<const ::sockaddr*>(&in); }
    [[nodiscard]] std::uint16_t port() const { return ntohs(in.sin_port); }
};

/// The address assigned to a socket.
inline address name_of(int fd) {
    address a;
    const int r = coil::detail::perform(coil::uring::prep::getsockname(fd, a.get(), &a.length));
    EXPECT_EQ(r, 0);
    return a;
}

/// A socket that listens on 127.0.0.1.
inline task<int> listening(int backlog = 16) {
    const int fd = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    const address any;
    const int bound = co_await io::bind(fd, any.get(), any.length);
    EXPECT_EQ(bound, 0);
    const int listens = co_await io::listen(fd, backlog);
    EXPECT_EQ(listens, 0);
    co_return fd;
}

struct ends {
    int a = -1;
    int b = -1;
};

/// The two ends of a connection, through a listening socket that no other task is using.
inline task<ends> connected(int listener) {
    const address at = name_of(listener);
    ends made;
    made.a = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    const int r = co_await io::connect(made.a, at.get(), at.length);
    EXPECT_EQ(r, 0);
    made.b = co_await io::accept(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(made.b, 0);
    co_return made;
}

inline task<ends> connected() {
    const int listener = co_await listening();
    const ends made = co_await connected(listener);
    co_await io::close(listener);
    co_return made;
}

/// Closes a connection with a RST, so that its port is free immediately, without TIME_WAIT.
inline task<> aborted(int fd) {
    const ::linger at_once{1, 0};
    int r = co_await io::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    EXPECT_EQ(r, 0);
    r = co_await io::close(fd);
    EXPECT_EQ(r, 0);
}

/// `a` is the read end, `b` the write end.
inline task<ends> piped(int flags = 0) {
    int fds[2] = {-1, -1};
    const int r = co_await io::pipe2(fds, O_CLOEXEC | flags);
    EXPECT_EQ(r, 0);
    co_return ends{fds[0], fds[1]};
}

/// Two Unix sockets that are connected to each other.
inline ends paired(int type) {
    int fds[2] = {-1, -1};
    const int r =
        coil::detail::perform(coil::uring::prep::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds));
    EXPECT_EQ(r, 0);
    return {fds[0], fds[1]};
}

inline task<> closed(ends e) {
    for (const int fd : {e.a, e.b}) {
        const int r = co_await io::close(fd);
        EXPECT_EQ(r, 0);
    }
}

inline std::string_view text(const char* data, int size) {
    return {data, static_cast<std::size_t>(size > 0 ? size : 0)};
}

} // namespace conformance
