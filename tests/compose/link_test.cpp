// a && b: one submission, executed in order, returns the last result (G13).

#include "compose/support.hpp"
#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::door_backend;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class Link : public compose_test::with_files {};

TEST_F(Link, G13_TwoOperationsRunInOrder) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<int> {
        co_return co_await (io::write(f, "ab") && io::write(f, "c"));
    };
    EXPECT_EQ(coil::run(main(fd)), 1); // the result of the last
    EXPECT_EQ(contents(fd), "abc");
}

TEST_F(Link, G13_OperationsRunInOrderHoweverTheyAreGrouped) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        EXPECT_EQ(co_await (io::write(f, "a") && io::write(f, "b") && io::write(f, "cc")), 2);
        EXPECT_EQ(co_await (io::write(f, "d") && (io::write(f, "e") && io::write(f, "ff"))), 2);
        EXPECT_EQ(co_await ((io::write(f, "g") && io::write(f, "h")) &&
                            (io::write(f, "i") && io::write(f, "jj"))),
                  2);
    };
    coil::run(main(fd));
    EXPECT_EQ(contents(fd), "abccdeffghijj");
}

TEST_F(Link, G13_IsOneSubmission) {
    auto guard = std::make_shared<door_backend::guard>();
    std::vector<std::size_t> submissions;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        std::size_t nops = 0;
        for (const sqe& e : entries) {
            nops += e.opcode == static_cast<std::uint8_t>(uring::opcode::nop) ? 1 : 0;
        }
        if (nops > 0) {
            submissions.push_back(nops);
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto main = []() -> task<int> { co_return co_await (io::nop() && io::nop() && io::nop()); };
    EXPECT_EQ(coil_test::run_on(ctx, main()), 0);
    EXPECT_EQ(submissions, std::vector<std::size_t>{3});
}

TEST_F(Link, TheSecondStartsWhenTheFirstHasSucceeded) {
    const socket_pair s;
    auto echo = [](int fd) -> task<> {
        char buf[16];
        const int n = co_await io::recv(fd, buf);
        co_await io::send(fd, {buf, n});
    };
    auto main = [](auto f, const socket_pair& pair) -> task<std::string> {
        coil::co_spawn(f(pair.b));
        char buf[16];
        const int n = co_await (io::send(pair.a, "ping") && io::recv(pair.a, buf));
        co_return std::string(buf, static_cast<std::size_t>(n));
    };
    EXPECT_EQ(coil::run(main(echo, s)), "ping");
}

TEST_F(Link, G13_AFailureCancelsTheRest) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        char c;
        const int bad = -1;
        EXPECT_EQ(co_await (io::read(bad, {&c, 1}) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::write(f, "1") && io::read(bad, {&c, 1}) && io::write(f, "x")),
                  -ECANCELED);
        EXPECT_EQ(co_await (io::write(f, "2") && io::write(f, "3") && io::read(bad, {&c, 1})),
                  -EBADF); // the last one's own error
    };
    coil::run(main(fd));
    EXPECT_EQ(contents(fd), "123");
}

TEST_F(Link, G13_AShortReadInTheMiddleBreaksTheChain) {
    const auto fd = temporary_file();
    const pipe_pair p;
    ASSERT_EQ(::write(fd, "four", 4), 4);
    auto main = [](int f, int out) -> task<> {
        char buf[10];
        EXPECT_EQ(co_await (io::read(f, buf, 0) && io::write(out, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::read(f, {buf, 4}, 0) && io::write(out, "y")), 1);
    };
    coil::run(main(fd, p.out));
    char buf[4];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 1);
    EXPECT_EQ(buf[0], 'y');
}

TEST_F(Link, G13_AShortWriteInTheMiddleBreaksTheChain) {
    const auto fd = temporary_file();
    const pipe_pair p;
    ::fcntl(p.out, F_SETPIPE_SZ, 4096);
    ::fcntl(p.out, F_SETFL, O_NONBLOCK);
    auto main = [](int out, int f) -> task<> {
        const std::string two_pages(8192, 'x');
        EXPECT_EQ(co_await (io::write(out, two_pages) && io::write(f, "no")), -ECANCELED);
    };
    coil::run(main(p.out, fd));
    EXPECT_EQ(contents(fd), "");
}

TEST_F(Link, G13_ASendInTheMiddleIsWhole) {
    const socket_pair s;
    const int small = 4096;
    ::setsockopt(s.a, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    const std::string large(1 << 20, 'x');
    std::size_t received = 0;
    std::thread peer([&] {
        std::string buf(3000, '\0');
        while (received < large.size()) {
            const ssize_t n = ::recv(s.b, buf.data(), buf.size(), 0);
            ASSERT_GT(n, 0);
            received += static_cast<std::size_t>(n);
        }
        ::send(s.b, "ok", 2, 0);
    });
    auto main = [](const socket_pair& pair, const std::string& data) -> task<int> {
        char buf[8];
        co_return co_await (io::send(pair.a, data) && io::recv(pair.a, buf));
    };
    EXPECT_EQ(coil::run(main(s, large)), 2);
    peer.join();
    EXPECT_EQ(received, large.size());
}

TEST_F(Link, G13_AnyFailureEndsTheChain) {
    const coil_test::descriptor unconnected{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const auto fd = temporary_file();
    auto main = [](int s, int f) -> task<> {
        EXPECT_EQ(co_await (io::shutdown(s, SHUT_WR) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::listen(-1, 1) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::bind(-1, nullptr, 0) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::connect(s, nullptr, 0) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::accept(s) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::close(-1) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::send(s, "x") && io::write(f, "x")), -ECANCELED);
        char c;
        EXPECT_EQ(co_await (io::recv(s, {&c, 1}) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::openat(-1, "x", O_RDONLY) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::socket(-1, 0) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::poll(-1, 1) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::readv(-1, {}) && io::write(f, "x")), -ECANCELED);
        EXPECT_EQ(co_await (io::writev(-1, {}) && io::write(f, "x")), -ECANCELED);
    };
    coil::run(main(unconnected, fd));
    EXPECT_EQ(contents(fd), "");
}

TEST_F(Link, MayBeKeptAndMoved) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<int> {
        auto first = io::write(f, "1");
        auto chain = std::move(first) && io::write(f, "23");
        auto longer = std::move(chain) && io::write(f, "456");
        co_return co_await std::move(longer);
    };
    EXPECT_EQ(coil::run(main(fd)), 3);
    EXPECT_EQ(contents(fd), "123456");
}

TEST_F(Link, G4_DescriptorsInTheMiddleAreClosed) {
    const coil_test::listener l;
    const auto a = l.connect();
    auto null = [] { return io::openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC); };
    auto main = [](auto open, int server) -> task<> {
        const coil_test::descriptor last{co_await (open() && open() && open())};
        EXPECT_GE(last, 0);
        EXPECT_EQ(co_await (open() && io::nop()), 0);
        EXPECT_EQ(co_await (io::accept(server) && io::nop()), 0);
        char c;
        EXPECT_EQ(co_await (open() && io::read(-1, {&c, 1}) && open()), -ECANCELED);
        EXPECT_EQ(co_await (io::socket(AF_INET, SOCK_STREAM) && io::read(-1, {&c, 1})), -EBADF);
    };
    coil::run(main(null, l.socket));
}

// ---- the size of the queue

TEST_F(Link, G13_AChainLongerThanTheQueueReturnsE2BIG) {
    io_context ctx(8);
    auto main = []() -> task<> {
        auto four = [] { return io::nop() && io::nop() && io::nop() && io::nop(); };
        EXPECT_EQ(co_await (four() && four()), 0);
        EXPECT_EQ(co_await (four() && four() && io::nop()), -E2BIG);
        EXPECT_EQ(co_await (four() && four()), 0); // the context still works
        EXPECT_EQ(co_await timeout(four() && four() && io::nop(), 1s), -E2BIG);
    };
    coil_test::run_on(ctx, main());
}

TEST_F(Link, G13_IsNeverSplitHoweverFullTheQueueIs) {
    for (std::size_t full = 0; full <= 8; ++full) {
        auto guard = std::make_shared<door_backend::guard>();
        bool split = false;
        guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
            if (!entries.empty()) {
                split = split || (entries.back().flags & uring::sqe_flag::io_link) != 0;
            }
            return 0;
        };
        io_context ctx(coil_test::with([&](auto& o) {
            o.entries = 8;
            o.make_backend = door_backend::factory(guard);
        }));
        const auto fd = temporary_file();
        auto nop = []() -> task<> { co_await io::nop(); };
        auto chain = [](int f) -> task<> {
            EXPECT_EQ(co_await (io::write(f, "a") && io::write(f, "b") && io::write(f, "c") &&
                                io::write(f, "d") && io::write(f, "e")),
                      1);
        };
        for (std::size_t i = 0; i < full; ++i) {
            ctx.co_spawn(nop());
        }
        ctx.co_spawn(chain(fd));
        for (std::size_t i = 0; i < full; ++i) {
            ctx.co_spawn(nop());
        }
        ctx.run();
        EXPECT_EQ(contents(fd), "abcde") << full;
        EXPECT_FALSE(split) << full;
    }
}

TEST_F(Link, G13_ManyChainsAtOnceThroughASmallQueue) {
    io_context ctx(8);
    const auto fd = temporary_file();
    auto chain = [](int f, int i, int& done) -> task<> {
        const char mine = static_cast<char>('a' + i % 26);
        const std::string three(3, mine);
        char buf[3] = {};
        EXPECT_EQ(co_await (io::write(f, three, 3 * i) && io::read(f, buf, 3 * i)), 3);
        EXPECT_EQ(std::string(buf, 3), three);
        ++done;
    };
    int done = 0;
    for (int i = 0; i < 500; ++i) {
        ctx.co_spawn(chain(fd, i, done));
    }
    ctx.run();
    EXPECT_EQ(done, 500);
}

} // namespace
