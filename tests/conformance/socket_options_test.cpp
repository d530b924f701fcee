// Socket options: which there are, their initial values, and the values that they accept.

#include "conformance/support.hpp"

#include <array>
#include <climits>
#include <cstring>

#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/time.h>

namespace conformance {

namespace {

class SocketOptions : public Conformance {};
COIL_ON_ALL_BACKENDS(SocketOptions);

struct option_case {
    const char* what;
    int family;
    int type;
    int level;
    int name;
    int initial; // the value, or -errno
    int set;     // a value to set, the result of that, and the value or -errno then
    int result;
    int then;
};

constexpr int unknown = 9999;

constexpr option_case cases[] = {
    {"SO_REUSEADDR", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR, 0, 5, 0, 1},
    {"SO_REUSEPORT", AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_REUSEPORT, 0, 5, 0, 1},
    {"SO_REUSEPORT of a Unix socket", AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_REUSEPORT, 0, 1,
     -EOPNOTSUPP, 0},
    {"SO_KEEPALIVE", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_KEEPALIVE, 0, 5, 0, 1},
    {"SO_BROADCAST", AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_BROADCAST, 0, 5, 0, 1},
    {"SO_PASSCRED", AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_PASSCRED, 0, 5, 0, 1},
    {"SO_PASSCRED of TCP", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_PASSCRED, -EOPNOTSUPP, 1,
     -EOPNOTSUPP, -EOPNOTSUPP},
    {"SO_RCVLOWAT", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_RCVLOWAT, 1, 3, 0, 3},
    {"SO_INCOMING_CPU", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_INCOMING_CPU, -1, 5, 0, 5},
    {"SO_TYPE", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_TYPE, SOCK_STREAM, 1, -ENOPROTOOPT,
     SOCK_STREAM},
    {"unknown", AF_INET, SOCK_STREAM, SOL_SOCKET, unknown, -ENOPROTOOPT, 1, -ENOPROTOOPT,
     -ENOPROTOOPT},
    {"unknown of a Unix socket", AF_UNIX, SOCK_DGRAM, SOL_SOCKET, unknown, -ENOPROTOOPT, 1,
     -ENOPROTOOPT, -ENOPROTOOPT},
    {"TCP_NODELAY", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY, 0, 5, 0, 1},
    {"TCP_CORK", AF_INET6, SOCK_STREAM, IPPROTO_TCP, TCP_CORK, 0, 5, 0, 1},
    {"TCP_KEEPINTVL", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPINTVL, 75, 7, 0, 7},
    {"TCP_KEEPINTVL, 0", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPINTVL, 75, 0, -EINVAL, 75},
    {"TCP_KEEPIDLE, 0", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPIDLE, 7200, 0, -EINVAL, 7200},
    {"TCP_KEEPCNT, 128", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPCNT, 9, 128, -EINVAL, 9},
    {"TCP_USER_TIMEOUT, -1", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_USER_TIMEOUT, 0, -1, -EINVAL,
     0},
    {"unknown of TCP", AF_INET, SOCK_STREAM, IPPROTO_TCP, unknown, -ENOPROTOOPT, 1, -ENOPROTOOPT,
     -ENOPROTOOPT},
    {"TCP_NODELAY of UDP", AF_INET, SOCK_DGRAM, IPPROTO_TCP, TCP_NODELAY, -EOPNOTSUPP, 1,
     -ENOPROTOOPT, -EOPNOTSUPP},
    {"TCP_NODELAY of a Unix socket", AF_UNIX, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY, -EOPNOTSUPP, 1,
     -EOPNOTSUPP, -EOPNOTSUPP},
    {"UDP_GRO", AF_INET, SOCK_DGRAM, IPPROTO_UDP, UDP_GRO, 0, 1, 0, 1},
    {"IP_TTL", AF_INET, SOCK_STREAM, IPPROTO_IP, IP_TTL, 64, 3, 0, 3},
    {"IP_TTL, 0", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL, 64, 0, -EINVAL, 64},
    {"IP_MULTICAST_LOOP", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_MULTICAST_LOOP, 1, 0, 0, 0},
    {"IPV6_V6ONLY", AF_INET6, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY, 0, 5, 0, 1},
    {"IPV6_V6ONLY of IPv4", AF_INET, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY, -EOPNOTSUPP, 1,
     -ENOPROTOOPT, -EOPNOTSUPP},
    {"a level that does not exist", AF_INET6, SOCK_STREAM, 77, 1, -ENOPROTOOPT, 1, -ENOPROTOOPT,
     -ENOPROTOOPT},
};

task<int> value_of(int fd, int level, int name) {
    int value = INT_MIN;
    ::socklen_t length = sizeof value;
    const int result = co_await io::getsockopt(fd, level, name, &value, &length);
    if (result == 0) {
        EXPECT_EQ(length, sizeof value);
    }
    co_return result < 0 ? result : value;
}

task<> values() {
    for (const option_case& c : cases) {
        const int fd = co_await io::socket(c.family, c.type | SOCK_CLOEXEC);
        int value = co_await value_of(fd, c.level, c.name);
        EXPECT_EQ(value, c.initial) << c.what;
        co_await gives(io::setsockopt(fd, c.level, c.name, &c.set, sizeof c.set), c.result, c.what);
        value = co_await value_of(fd, c.level, c.name);
        EXPECT_EQ(value, c.then) << c.what << ", afterwards";
        co_await gives(io::close(fd), 0);
    }
}
TEST_P(SocketOptions, Values) { run(values()); }

task<> structures() {
    const int fd = co_await io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
    ::linger linger{-1, -1};
    ::socklen_t length = sizeof linger;
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
    EXPECT_EQ(length, sizeof linger);
    EXPECT_EQ(linger.l_onoff, 0);
    EXPECT_EQ(linger.l_linger, 0);
    linger = {7, 3};
    co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(int)), -EINVAL);
    co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length), 0);
    EXPECT_EQ(linger.l_onoff, 1);
    EXPECT_EQ(linger.l_linger, 3);
    ::timeval limit{-1, -1};
    length = sizeof limit;
    co_await gives(io::getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &length), 0);
    EXPECT_EQ(length, sizeof limit);
    EXPECT_EQ(limit.tv_sec, 0);
    std::array<int, 2> on{1, 1};
    co_await gives(io::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, on.data(), sizeof on), 0);
    int value = co_await value_of(fd, SOL_SOCKET, SO_KEEPALIVE);
    EXPECT_EQ(value, 1);
    co_await gives(io::close(fd), 0);
}
TEST_P(SocketOptions, Structures) { run(structures()); }

} // namespace

} // namespace conformance
