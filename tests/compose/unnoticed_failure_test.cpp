// Chains with calls whose failure does not make the kernel cancel the rest of the chain. coil
// therefore submits the operations after such a call only when the call has succeeded (G13).

#include "compose/support.hpp"
#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::door_backend;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class UnnoticedFailure : public compose_test::with_files {};

constexpr const char* gone = "/tmp/coil-no-such-directory/x";

/// Calls `each` with the name of every such call, and a function that makes one that fails.
template <class Each>
void for_each_failing(Each each) {
    static struct ::statx st;
    char value[4];
    each("shutdown", [] { return io::shutdown(-1, SHUT_WR); });
    each("unlink", [] { return io::unlink(gone); });
    each("rename", [] { return io::rename(gone, gone); });
    each("mkdir", [] { return io::mkdir(gone, 0700); });
    each("symlink", [] { return io::symlink("x", gone); });
    each("link", [] { return io::link(gone, gone); });
    each("statx", [] { return io::statx(AT_FDCWD, gone, 0, STATX_SIZE, &st); });
    each("fsync", [] { return io::fsync(-1); });
    each("fdatasync on a pipe", [p = pipe_pair()] { return io::fdatasync(p.in); });
    each("sync_file_range", [p = pipe_pair()] { return io::sync_file_range(p.in, 0, 1, 0); });
    each("fallocate", [p = pipe_pair()] { return io::fallocate(p.in, 0, 0, 1); });
    each("ftruncate", [p = pipe_pair()] { return io::ftruncate(p.in, 1); });
    each("fadvise", [p = pipe_pair()] { return io::fadvise(p.in, 0, 0, 0); });
    each("madvise", [] { return io::madvise(nullptr, 1, 12345); });
    each("getxattr", [&] { return io::getxattr(gone, "user.a", value); });
    each("setxattr", [] { return io::setxattr(gone, "user.a", "x"); });
    each("fgetxattr", [&, p = pipe_pair()] { return io::fgetxattr(p.in, "x", value); });
    each("fsetxattr", [p = pipe_pair()] { return io::fsetxattr(p.in, "x", "y"); });
    each("openat2", [] { return io::openat2(-1, "x", nullptr, 0); });
    static const std::uint32_t word = 1;
    static const int one = 1;
    static int option;
    static ::socklen_t length;
    static ::epoll_event event;
    static const uring::futex_waiter waiter{};
    each("read_fixed", [&] { return io::read_fixed(-1, value, 0, 0); });
    each("write_fixed", [&] { return io::write_fixed(-1, value, 0, 0); });
    each("futex_wait", [] { return io::futex_wait(&word, 2); });
    each("futex_wake", [] { return io::futex_wake(&word, 1, 0); });
    each("futex_waitv", [] { return io::futex_waitv({&waiter, 1}); });
    each("waitid", [] { return io::waitid(P_ALL, 0, nullptr, 0); });
    each("waitid of no child", [] { return io::waitid(P_PID, 1, nullptr, WEXITED); });
    each("msg_ring", [p = pipe_pair()] { return io::msg_ring(p.in, 0, 0); });
    each("epoll_ctl", [p = pipe_pair()] { return io::epoll_ctl(p.in, 1, p.out, &event); });
    each("epoll_wait", [p = pipe_pair()] { return io::epoll_wait(p.in, {&event, 1}); });
    each("setsockopt", [] { return io::setsockopt(-1, SOL_SOCKET, 9999, &one, sizeof one); });
    each("setsockopt of a pipe",
         [p = pipe_pair()] { return io::setsockopt(p.in, SOL_SOCKET, 1, &one, sizeof one); });
    each("getsockopt", [] { return io::getsockopt(-1, SOL_SOCKET, 1, &option, &length); });
    each("getsockopt of TCP", [] { return io::getsockopt(-1, IPPROTO_TCP, 1, &option, &length); });
}

TEST_F(UnnoticedFailure, G13_AnyFailedCallEndsTheChain) {
    const auto fd = temporary_file();
    for_each_failing([&](const char* name, const auto& fails) {
        auto main = [](const auto& op, int f) -> task<int> {
            co_return co_await (op() && io::write(f, "went on"));
        };
        EXPECT_EQ(coil::run(main(fails, fd)), -ECANCELED) << name;
        auto limited = [](const auto& op, int f) -> task<int> {
            co_return co_await (timeout(op(), 5s) && io::write(f, "went on"));
        };
        EXPECT_EQ(coil::run(limited(fails, fd)), -ECANCELED) << name << " with a limit";
    });
    EXPECT_EQ(contents(fd), "");
}

TEST_F(UnnoticedFailure, G13_SeveralSuccessfulCallsContinueTheChain) {
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        EXPECT_EQ(co_await (io::write(f, "a") && io::fsync(f) && io::write(f, "b") &&
                            io::fdatasync(f) && io::fsync(f) && io::write(f, "cc")),
                  2);
        EXPECT_EQ(co_await (timeout(io::fsync(f), 5s) && io::write(f, "d")), 1);
        EXPECT_EQ(co_await timeout(io::fsync(f) && io::write(f, "e"), 5s), 1);
        EXPECT_EQ(co_await (io::fsync(f) && io::openat(-1, "x", O_RDONLY) && io::write(f, "no")),
                  -ECANCELED);
        EXPECT_EQ(co_await (io::read(-1, {}) && io::fsync(f) && io::write(f, "no")), -ECANCELED);
    };
    coil::run(main(fd));
    EXPECT_EQ(contents(fd), "abccde");
}

TEST_F(UnnoticedFailure, G13_AChainIsSubmittedInAsFewPartsAsPossible) {
    auto guard = std::make_shared<door_backend::guard>();
    std::vector<std::size_t> submissions;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        std::size_t calls = 0;
        for (const sqe& e : entries) {
            calls += e.opcode == static_cast<std::uint8_t>(uring::opcode::write) ||
                     e.opcode == static_cast<std::uint8_t>(uring::opcode::fsync);
        }
        if (calls > 0) {
            submissions.push_back(calls);
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    const auto fd = temporary_file();
    auto main = [](int f) -> task<> {
        EXPECT_EQ(co_await (io::write(f, "a") && io::write(f, "b") && io::fsync(f) &&
                            io::write(f, "c") && io::fsync(f)),
                  0);
    };
    coil_test::run_on(ctx, main(fd));
    EXPECT_EQ(submissions, (std::vector<std::size_t>{3, 2}));
}

TEST_F(UnnoticedFailure, G13_ChainsCompleteUnderBackPressure) {
    io_context ctx(coil_test::with([](auto& o) {
        o.entries = 8;
        o.max_in_flight = 3;
    }));
    const auto fd = temporary_file();
    int ended = 0;
    auto chain = [](int f, int& n) -> task<> {
        EXPECT_EQ(co_await (io::fsync(f) && io::write(f, "x", 0) && io::fsync(f) && io::nop()), 0);
        ++n;
    };
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(chain(fd, ended));
    }
    ctx.run();
    EXPECT_EQ(ended, 100);
}

TEST_F(UnnoticedFailure, G6_AQueuedRestKeepsTheLoopFromSleeping) {
    // The first part completes in the last poll before the loop sleeps. That makes no coroutine
    // ready, and nothing is in flight: the second part is queued behind the other chain.
    auto script = std::make_shared<coil_test::scripted_backend::script>();
    script->on_submit = [&](const coil_test::sqe& e) { script->post(e.user_data, 0); };
    io_context ctx(coil_test::with([&](auto& o) {
        o.make_backend = coil_test::scripted_backend::factory(script);
        o.max_in_flight = 1;
        o.idle = idle_policy::spin(10us);
    }));
    int ended = 0;
    auto chain = [](int& n) -> task<> {
        EXPECT_EQ(co_await (io::fsync(3) && io::nop()), 0);
        ++n;
    };
    ctx.co_spawn(chain(ended));
    ctx.co_spawn(chain(ended));
    ctx.run();
    EXPECT_EQ(ended, 2);
}

TEST_F(UnnoticedFailure, G13_NoPartFollowsACancelledOne) {
    // The stop is requested while the second part waits for data; the third never starts.
    const auto fd = temporary_file();
    const pipe_pair p;
    auto chain = [](int f, int in) -> task<int> {
        char c;
        co_return co_await (io::fsync(f) && io::read(in, {&c, 1}) && io::fsync(f) &&
                            io::write(f, "no"));
    };
    io_context ctx;
    auto handle = ctx.spawn(chain(fd, p.in));
    auto stopper = [](auto& h) -> task<> {
        co_await sleep_for(10ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
    };
    coil_test::run_on(ctx, stopper(handle));
    EXPECT_EQ(contents(fd), "");
}

/// A chain of two parts: the first posts one completion for several calls; the second waits
/// forever.
class SecondPart : public ::testing::Test {
protected:
    static auto chain(const coil_test::socket_pair& s, char& c) {
        return io::nop() && io::shutdown(s.b, SHUT_RD) && io::recv(s.a, {&c, 1});
    }
    coil_test::socket_pair sockets_;
};

TEST_F(SecondPart, G3_IsLimitedAndStopped) {
    auto main = [](const coil_test::socket_pair& s) -> task<> {
        char c;
        EXPECT_EQ(co_await timeout(chain(s, c), 5ms), -ETIMEDOUT);
        auto op = eager(chain(s, c));
        co_await sleep_for(2ms);
        op.cancel();
        EXPECT_EQ(co_await op, -ECANCELED);
        auto awaits = [](const coil_test::socket_pair& pair) -> task<int> {
            char byte;
            co_return co_await chain(pair, byte);
        };
        auto handle = coil::spawn(awaits(s));
        co_await sleep_for(2ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
    };
    coil::run(main(sockets_));
}

TEST_F(SecondPart, G2_IsDropped) {
    auto main = [](const coil_test::socket_pair& s) -> task<> {
        char c;
        {
            auto dropped = eager(chain(s, c));
            co_await sleep_for(2ms);
        }
        try {
            const auto unwound = eager(chain(s, c));
            co_await sleep_for(2ms);
            throw std::runtime_error("as expected");
        } catch (const std::runtime_error&) {
        }
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main(sockets_));
}

TEST_F(UnnoticedFailure, G5_DestroyedBetweenItsParts) {
    for (int turns = 0; turns < 6; ++turns) {
        const auto fd = temporary_file();
        int destroyed = 0;
        bool went_on = false;
        io_context ctx;
        auto chain = [](int f, coil_test::on_destruction, bool& after) -> task<> {
            co_await (io::fsync(f) && io::fsync(f) && io::write(f, "x") && io::fsync(f));
            after = true;
        };
        auto stops = [](io_context& c, int n) -> task<> {
            for (int i = 0; i < n; ++i) {
                co_await yield();
            }
            c.stop();
        };
        ctx.co_spawn(chain(fd, coil_test::on_destruction(destroyed), went_on));
        ctx.co_spawn(stops(ctx, turns));
        ctx.run();
        EXPECT_EQ(destroyed, 1) << turns;
        struct ::stat status{};
        ASSERT_EQ(::fstat(fd, &status), 0);
        EXPECT_TRUE(!went_on || status.st_size == 1) << turns;
    }
}

} // namespace
