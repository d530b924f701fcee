// What io_uring and the epoll backend must agree on: cancelled and refused connection attempts.

#include "uring/backends.hpp"

#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace uring_test {
namespace {

struct BothBackendsConnection : BothBackends {};
COIL_ON_BOTH_BACKENDS(BothBackendsConnection);

struct server {
    server() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof address;
        if (::bind(socket, name(), size) != 0 || ::listen(socket, 0) != 0 ||
            ::getsockname(socket, name(), &size) != 0) {
            throw std::system_error(errno, std::generic_category(), "listen");
        }
    }
    ::sockaddr* name() { return reinterpret_cast<::sockaddr*>(&address); }
    descriptor socket;
    ::sockaddr_in address{};
};

descriptor client() { return descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }

TEST_P(BothBackendsConnection, TheHandshakeOutlivesACancelledConnect) {
    ring r{small(), make()};
    server s;
    const descriptor first = client();
    ASSERT_EQ(::connect(first, s.name(), sizeof s.address), 0); // the queue is full
    const descriptor second = client();
    const sqe connects = prep::connect(second, s.name(), sizeof s.address);
    queue(r, connects, 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_TRUE(is_quiet(r, 2ms));
    queue(r, prep::cancel(1), 2);
    EXPECT_EQ(results(r, 2), (std::map<std::uint64_t, int>{{1, -ECANCELED}, {2, 0}}));
    EXPECT_EQ(run(r, connects), -EALREADY);
}

TEST_P(BothBackendsConnection, ARefusalLeavesTheSocketInTheSameState) {
    ring r{small(), make()};
    server s;
    s.socket.reset();
    const descriptor fd = client();
    const sqe connects = prep::connect(fd, s.name(), sizeof s.address);
    const sqe polls = prep::poll_add(fd, POLLIN | POLLOUT | POLLRDHUP);
    char byte = 0;
    const std::vector<std::pair<sqe, int>> steps{
        {polls, POLLOUT | POLLHUP},
        {connects, -ECONNREFUSED},
        {polls, POLLHUP | POLLIN | POLLOUT | POLLRDHUP},
        {prep::recv(fd, &byte, 1, 0), 0},
        {prep::send(fd, "x", 1, MSG_NOSIGNAL), -EPIPE},
        {connects, -ECONNREFUSED}, // connecting may be tried again
        {prep::shutdown(fd, SHUT_WR), -ENOTCONN},
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(run(r, steps[i].first), steps[i].second) << i;
    }
}

} // namespace
} // namespace uring_test
