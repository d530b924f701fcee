#include "session.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace load {
namespace {

void send_requests(session& s, connection& c, unsigned count, std::uint64_t now) {
    const std::string_view request = s.requests(count);
    s.sent(c, count, now);
    // A blocking send: it sends the whole batch, or the connection is broken.
    if (send(c.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
        s.lost(c);
    }
}

} // namespace

void run_epoll(session& s) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        std::perror("load: epoll_create1");
        std::exit(1);
    }
    for (connection& c : s.connections()) {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLET;
        event.data.ptr = &c;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, c.fd, &event) != 0) {
            std::perror("load: epoll_ctl");
            std::exit(1);
        }
        send_requests(s, c, s.settings().pipeline, now_ns());
    }
    std::array<epoll_event, 256> events{};
    std::array<char, 65536> buffer;
    for (;;) {
        const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 10);
        const std::uint64_t now = now_ns();
        for (int i = 0; i < ready; ++i) {
            connection& c = *static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr);
            if (c.fd < 0) {
                continue;
            }
            const ssize_t n = recv(c.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (n > 0) {
                const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
                if (const unsigned count = s.received(c, bytes, now); count > 0) {
                    send_requests(s, c, count, now);
                }
            } else if (n == 0 || errno != EAGAIN) {
                s.lost(c);
            }
        }
        if (s.over(now)) {
            break;
        }
    }
    close(epoll);
}

} // namespace load
