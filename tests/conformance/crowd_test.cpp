// Many connections at a time, most of them idle, on the backends that use Linux sockets.

#include "conformance/support.hpp"
#include "support/backends.hpp"

#include <csignal>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace conformance {

namespace {

/// 10,000 in the long tests.
const auto crowd = static_cast<unsigned>(coil_test::rounds(2'000, 10'000));

bool is_answered(int fd, char byte) {
    char back = 0;
    return ::send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd, &back, 1, 0) == 1 && back == byte;
}

/// The other end of all connections: another process, because of the limit of descriptors per
/// process.
[[noreturn]] void be_the_crowd(const address& server) {
    ::alarm(60);
    std::vector<int> all;
    for (unsigned i = 0; i < crowd; ++i) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || ::connect(fd, server.get(), server.length) != 0) {
            ::_exit(1);
        }
        all.push_back(fd);
    }
    // Each is served once; then a few are busy among many idle ones.
    for (const int fd : all) {
        if (!is_answered(fd, 'a')) {
            ::_exit(2);
        }
    }
    for (unsigned i = 0; i < 1000; ++i) {
        if (!is_answered(all[i % 10 * (crowd / 10)], static_cast<char>('b' + i % 20))) {
            ::_exit(3);
        }
    }
    ::_exit(0); // which closes them
}

task<> echoes(int fd, unsigned& ended) {
    char byte = 0;
    for (;;) {
        const int n = co_await io::recv(fd, {&byte, 1});
        if (n <= 0) {
            break;
        }
        co_await io::send(fd, {&byte, 1});
    }
    co_await io::close(fd);
    ++ended;
}

task<> serves_a_crowd(unsigned& ended) {
    const int listener = co_await listening(1024);
    const address at = name_of(listener);
    const ::pid_t child = ::fork();
    if (child == 0) {
        be_the_crowd(at);
    }
    {
        auto incoming = io::accept_multishot(listener, SOCK_CLOEXEC);
        for (unsigned i = 0; i < crowd; ++i) {
            const auto fd = co_await incoming.next();
            if (!fd) {
                ADD_FAILURE() << i << ": " << fd.error().message();
                break;
            }
            coil::co_spawn(echoes(*fd, ended));
        }
    }
    ::siginfo_t info{};
    co_await gives(io::waitid(P_PID, static_cast<::id_t>(child), &info, WEXITED), 0);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 0);
    co_await gives(io::close(listener), 0);
}

class Crowd : public testing::TestWithParam<coil::io_backend> {};
INSTANTIATE_TEST_SUITE_P(, Crowd,
                         testing::Values(coil::io_backend::io_uring, coil::io_backend::epoll),
                         [](const auto& one) {
                             return one.param == coil::io_backend::epoll ? "epoll" : "linux";
                         });

TEST_P(Crowd, ManyConnectionsMostOfThemIdle) {
    if (GetParam() == coil::io_backend::io_uring && !coil_test::io_uring_is_allowed()) {
        GTEST_SKIP() << "io_uring is not available";
    }
    ::rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < crowd + 100) {
        const ::rlimit more{files.rlim_max, files.rlim_max};
        if (files.rlim_max < crowd + 100 || ::setrlimit(RLIMIT_NOFILE, &more) != 0) {
            GTEST_SKIP() << "RLIMIT_NOFILE permits only " << files.rlim_max << " descriptors";
        }
    }
    unsigned ended = 0;
    {
        coil::io_context context(coil_test::with(
            [&](coil::io_context_options& options) { options.backend = GetParam(); }));
        coil_test::run_on(context, serves_a_crowd(ended));
    }
    EXPECT_EQ(ended, crowd);
    ::setrlimit(RLIMIT_NOFILE, &files);
}

} // namespace

} // namespace conformance
