// getsockopt, setsockopt: effects and results are those of the system calls, at levels that the
// ring supports and at others.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace coil;
using coil_test::descriptor;
using coil_test::door_backend;
using coil_test::socket_pair;
using io_test::outcome;

namespace {

struct option {
    const char* text;
    int domain;
    int type;
    int level;
    int name;
};

constexpr auto options = std::to_array<option>({
    {"SO_KEEPALIVE", AF_INET, SOCK_STREAM, SOL_SOCKET, SO_KEEPALIVE},
    {"SO_RCVBUF", AF_INET6, SOCK_STREAM, SOL_SOCKET, SO_RCVBUF},
    {"SO_TYPE, read only", AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_TYPE},
    {"unknown option of SOL_SOCKET", AF_INET, SOCK_STREAM, SOL_SOCKET, 9999},
    {"TCP_NODELAY", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY},
    {"unknown option of TCP", AF_INET, SOCK_STREAM, IPPROTO_TCP, 9999},
    {"IP_TTL", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL},
    {"IPV6_V6ONLY", AF_INET6, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY},
    {"UDP_CORK", AF_INET, SOCK_DGRAM, IPPROTO_UDP, UDP_CORK},
    {"TCP_NODELAY of a unix socket", AF_UNIX, SOCK_STREAM, IPPROTO_TCP, TCP_NODELAY},
    {"unknown level", AF_INET, SOCK_STREAM, 12345, 1},
});

/// Runs with a kernel that has socket commands, and with an older one.
class SocketOptions : public ::testing::Test, public ::testing::WithParamInterface<bool> {
protected:
    static std::shared_ptr<door_backend::guard> backend() {
        auto guard = std::make_shared<door_backend::guard>();
        if (!GetParam()) {
            guard->hidden = {uring::opcode::uring_cmd};
        }
        return guard;
    }
    template <class Operation>
    int result_of(Operation op) {
        return coil_test::run_on(context_, io_test::await_one(std::move(op)));
    }
    io_context context_{
        coil_test::with([](auto& o) { o.make_backend = door_backend::factory(backend()); })};
};

TEST_P(SocketOptions, ReturnWhatTheSystemCallsReturn) {
    for (const option& o : options) {
        const descriptor ours{::socket(o.domain, o.type | SOCK_CLOEXEC, 0)};
        const descriptor theirs{::socket(o.domain, o.type | SOCK_CLOEXEC, 0)};
        ASSERT_GE(ours, 0) << o.text;
        const auto same_value = [&](const char* when) {
            std::array<int, 2> value{-7, -8};
            std::array<int, 2> expected{-7, -8};
            ::socklen_t length = sizeof value;
            ::socklen_t expected_length = sizeof expected;
            const int r = ::getsockopt(theirs, o.level, o.name, expected.data(), &expected_length);
            const int error = outcome(r);
            EXPECT_EQ(result_of(io::getsockopt(ours, o.level, o.name, value.data(), &length)),
                      error)
                << o.text << when;
            EXPECT_EQ(length, expected_length) << o.text << when;
            EXPECT_EQ(value, expected) << o.text << when;
        };
        same_value(" at first");
        const int one = 1;
        EXPECT_EQ(result_of(io::setsockopt(ours, o.level, o.name, &one, sizeof one)),
                  outcome(::setsockopt(theirs, o.level, o.name, &one, sizeof one)))
            << o.text;
        same_value(" afterwards");
    }
}

TEST_P(SocketOptions, BadArgumentsFailAsTheSystemCallsDo) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const coil_test::pipe_pair no_socket;
    int value = 1;
    for (const auto& [level, name] :
         {std::pair{SOL_SOCKET, SO_KEEPALIVE}, std::pair{int{IPPROTO_TCP}, TCP_NODELAY}}) {
        for (const int fd : {-1, int{no_socket.in}, int{tcp}}) {
            for (const ::socklen_t size : {0U, 1U, 4U, ~0U}) {
                ::socklen_t length = size;
                ::socklen_t expected = size;
                const int theirs = outcome(::getsockopt(fd, level, name, &value, &expected));
                EXPECT_EQ(result_of(io::getsockopt(fd, level, name, &value, &length)), theirs)
                    << level << ' ' << fd << ' ' << size;
                EXPECT_EQ(length, expected) << level << ' ' << fd << ' ' << size;
                EXPECT_EQ(result_of(io::setsockopt(fd, level, name, &value, size)),
                          outcome(::setsockopt(fd, level, name, &value, size)))
                    << level << ' ' << fd << ' ' << size;
            }
        }
        ::socklen_t length = sizeof value;
        EXPECT_EQ(result_of(io::getsockopt(tcp, level, name, nullptr, &length)),
                  outcome(::getsockopt(tcp, level, name, nullptr, &length)));
        EXPECT_EQ(result_of(io::getsockopt(tcp, level, name, &value, nullptr)),
                  outcome(::getsockopt(tcp, level, name, &value, nullptr)));
        EXPECT_EQ(result_of(io::setsockopt(tcp, level, name, nullptr, sizeof value)),
                  outcome(::setsockopt(tcp, level, name, nullptr, sizeof value)));
    }
}

TEST_P(SocketOptions, TheLengthIsReadWhenTheAwaitBegins) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int value = 0;
    ::socklen_t length = 0;
    auto get = io::getsockopt(tcp, SOL_SOCKET, SO_TYPE, &value, &length);
    length = sizeof value;
    EXPECT_EQ(result_of(std::move(get)), 0);
    EXPECT_EQ(length, sizeof value);
    EXPECT_EQ(value, SOCK_STREAM);
}

INSTANTIATE_TEST_SUITE_P(Backends, SocketOptions, ::testing::Bool(), [](const auto& has_commands) {
    return has_commands.param ? "WithCommands" : "WithoutCommands";
});

class SocketOptionChains : public ::testing::Test {};

TEST_F(SocketOptionChains, G13_AfterALinkThatFailedNothingIsSet) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    for (const bool has_commands : {true, false}) {
        auto guard = std::make_shared<door_backend::guard>();
        if (!has_commands) {
            guard->hidden = {uring::opcode::uring_cmd};
        }
        io_context ctx(
            coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
        auto main = [](int fd) -> task<int> {
            const int one = 1;
            co_return co_await (io::read(-1, {}) &&
                                io::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        };
        EXPECT_LT(coil_test::run_on(ctx, main(tcp)), 0);
        int value = -1;
        ::socklen_t length = sizeof value;
        EXPECT_EQ(::getsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
        EXPECT_EQ(value, 0) << has_commands;
    }
}

TEST_F(SocketOptionChains, G13_SetAndGetInOneChain) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    auto main = [](int fd) -> task<> {
        const int one = 1;
        int value = 0;
        int type = 0;
        ::socklen_t length = sizeof value;
        ::socklen_t type_length = 64;
        EXPECT_EQ(co_await (io::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) &&
                            io::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) &&
                            io::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length)),
                  0);
        EXPECT_EQ(type, SOCK_STREAM);
        EXPECT_EQ(type_length, sizeof type);
        EXPECT_EQ(value, 1);
    };
    coil::run(main(tcp));
}

TEST_F(SocketOptionChains, G13_ALevelThatTheRingLacksInTheMiddle) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const coil_test::pipe_pair p;
    auto main = [](int fd, const coil_test::pipe_pair& pipe) -> task<> {
        const int one = 1;
        int value = 0;
        ::socklen_t length = 64;
        EXPECT_EQ(co_await (io::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) &&
                            io::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length) &&
                            io::write(pipe.out, "went on")),
                  7);
        EXPECT_EQ(value, 1);
        EXPECT_EQ(length, sizeof value);
        EXPECT_EQ(co_await (timeout(io::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length),
                                    std::chrono::seconds(5)) &&
                            io::write(pipe.out, "twice")),
                  5);
        EXPECT_EQ(co_await (io::getsockopt(fd, IPPROTO_TCP, 9999, &value, &length) &&
                            io::write(pipe.out, "no")),
                  -ECANCELED);
        EXPECT_EQ(co_await (io::getsockopt(pipe.in, SOL_SOCKET, SO_TYPE, &value, &length) &&
                            io::write(pipe.out, "no")),
                  -ECANCELED);
    };
    coil::run(main(tcp, p));
    char buf[32];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 12);
}

TEST_F(SocketOptionChains, ADirectDescriptorHasWhatTheRingHas) {
    const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    io_context ctx;
    if (!ctx.loop().ring().supports(uring::opcode::futex_wait)) {
        GTEST_SKIP() << "socket commands of a ring need Linux 6.7";
    }
    auto main = [](int fd) -> task<> {
        const io::direct_descriptor direct = co_await io::register_file(fd);
        EXPECT_GE(direct, 0);
        const int one = 1;
        int value = 0;
        ::socklen_t length = sizeof value;
        EXPECT_EQ(co_await io::setsockopt(direct, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
        EXPECT_EQ(co_await io::getsockopt(direct, SOL_SOCKET, SO_TYPE, &value, &length), 0);
        EXPECT_EQ(value, SOCK_STREAM);
        EXPECT_EQ(co_await io::getsockopt(direct, IPPROTO_TCP, TCP_NODELAY, &value, &length),
                  -EOPNOTSUPP); // only the ring knows the file
        EXPECT_EQ(co_await io::close_direct(direct), 0);
    };
    coil_test::run_on(ctx, main(tcp));
    int value = 0;
    ::socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
    EXPECT_EQ(value, 1);
}

} // namespace
