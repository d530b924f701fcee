// Opcodes that the running kernel lacks: calls that never wait use the system call, others report
// an error. Nothing hangs.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <coil/io/direct.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::door_backend;
using coil_test::manual;
using coil_test::pipe_pair;
using io_test::outcome;
using io_test::temporary_directory;
using uring::opcode;

namespace {

/// A context whose kernel has only nop and the features that the loop itself needs.
class Fallback : public ::testing::Test {
protected:
    static std::shared_ptr<door_backend::guard> bare_backend() {
        auto guard = std::make_shared<door_backend::guard>();
        for (unsigned i = 1; i < uring::opcode_count; ++i) {
            guard->hidden.push_back(static_cast<opcode>(i));
        }
        return guard;
    }
    template <class Operation>
    int result_of(Operation op) {
        return coil_test::run_on(context_, io_test::await_one(std::move(op)));
    }
    io_context context_{
        coil_test::with([](auto& o) { o.make_backend = door_backend::factory(bare_backend()); })};
    temporary_directory dir_;
};

TEST_F(Fallback, NamesOfFiles) {
    std::ofstream(dir_ / "a") << "text";
    const auto exists = [&](const char* name) {
        return std::filesystem::exists(std::filesystem::symlink_status(dir_ / name));
    };
    const descriptor at{::open((dir_ / ".").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    EXPECT_EQ(result_of(io::renameat(at, "a", at, "b")), 0);
    EXPECT_TRUE(exists("b") && !exists("a"));
    EXPECT_EQ(result_of(io::linkat(at, "b", at, "c", 0)), 0);
    EXPECT_EQ(result_of(io::symlinkat("b", at, "d")), 0);
    EXPECT_EQ(std::filesystem::read_symlink(dir_ / "d"), "b");
    EXPECT_TRUE(std::filesystem::equivalent(dir_ / "b", dir_ / "c"));
    EXPECT_EQ(result_of(io::renameat(at, "b", at, "c", RENAME_NOREPLACE)), -EEXIST);
    EXPECT_EQ(result_of(io::mkdirat(at, "e", 0700)), 0);
    EXPECT_EQ(std::filesystem::status(dir_ / "e").permissions(), std::filesystem::perms::owner_all);
    EXPECT_EQ(result_of(io::mkdirat(at, "e", 0700)), -EEXIST);
    EXPECT_EQ(result_of(io::unlinkat(at, "e", 0)), -EISDIR);
    EXPECT_EQ(result_of(io::unlinkat(at, "e", AT_REMOVEDIR)), 0);
    EXPECT_EQ(result_of(io::unlinkat(at, "d", 0)), 0);
    EXPECT_TRUE(!exists("d") && !exists("e") && exists("b"));
}

TEST_F(Fallback, ExtendedAttributes) {
    std::ofstream(dir_ / "f") << "text";
    const auto path = dir_ / "f";
    const descriptor fd{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
    EXPECT_EQ(result_of(io::getxattr(path, "user.none", mutable_buffer())),
              outcome(::getxattr(path.c_str(), "user.none", nullptr, 0)));
    EXPECT_EQ(result_of(io::setxattr(path, "nonsense", "v")),
              outcome(::setxattr(path.c_str(), "nonsense", "v", 1, 0)));
    EXPECT_EQ(result_of(io::fsetxattr(-1, "user.a", "v")), -EBADF);
    if (result_of(io::setxattr(path, "user.a", "value")) == -EOPNOTSUPP) {
        GTEST_SKIP() << "the file system of the temporary directory has no user attributes";
    }
    char value[16] = {};
    EXPECT_EQ(result_of(io::fgetxattr(fd, "user.a", value)), 5);
    EXPECT_STREQ(value, "value");
    EXPECT_EQ(result_of(io::fsetxattr(fd, "user.a", "x", XATTR_CREATE)), -EEXIST);
    EXPECT_EQ(result_of(io::fsetxattr(fd, "user.a", "other", XATTR_REPLACE)), 0);
    EXPECT_EQ(result_of(io::getxattr(path, "user.a", value)), 5);
    EXPECT_STREQ(value, "other");
}

TEST_F(Fallback, SocketsPipesAndSizes) {
    const descriptor s{result_of(io::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    ASSERT_GE(s, 0);
    ::sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const address = reinterpret_cast<const ::sockaddr*>(&any);
    EXPECT_EQ(result_of(io::bind(s, address, sizeof any)), 0);
    EXPECT_EQ(result_of(io::bind(s, address, 3)), -EINVAL);
    EXPECT_EQ(result_of(io::listen(s, 1)), 0);
    EXPECT_EQ(result_of(io::shutdown(-1, SHUT_WR)), -EBADF);
    int fds[2] = {-1, -1};
    ASSERT_EQ(result_of(io::pipe(fds, O_CLOEXEC)), 0);
    const descriptor in{fds[0]};
    const descriptor out{fds[1]};
    EXPECT_EQ(::write(out, "x", 1), 1);
    EXPECT_EQ(result_of(io::ftruncate(in, 1)), outcome(::ftruncate(in, 1)));
    const descriptor file{::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    EXPECT_EQ(result_of(io::ftruncate(file, 77)), 0);
    EXPECT_EQ(::lseek(file, 0, SEEK_END), 77);
}

TEST_F(Fallback, FutexWakeWakesThreads) {
    std::atomic<std::uint32_t> word{1};
    std::atomic<bool> waiting{false};
    for (const std::uint32_t flag : {0U, uring::futex_flag::private_}) {
        waiting = false;
        std::thread waiter([&] {
            waiting = true;
            const long op = flag; // FUTEX_WAIT, FUTEX_PRIVATE_FLAG
            EXPECT_EQ(::syscall(SYS_futex, &word, op, 1, nullptr, nullptr, 0), 0);
        });
        while (!waiting) {
            std::this_thread::yield();
        }
        while (result_of(io::futex_wake(&word, 1, uring::futex_match_any,
                                        uring::futex_flag::size_u32 | flag)) == 0) {
            EXPECT_EQ(result_of(io::futex_wake(&word, 0)), 0);
            std::this_thread::sleep_for(1ms);
        }
        waiter.join();
    }
    const auto* const odd = reinterpret_cast<const char*>(&word) + 1;
    EXPECT_EQ(result_of(io::futex_wake(odd, 1)), -EINVAL);
    EXPECT_EQ(result_of(io::futex_wake(&word, 1, 0)), -EINVAL);
    EXPECT_EQ(result_of(io::futex_wake(&word, 1, 1, 0)), -EINVAL);
    EXPECT_EQ(result_of(io::futex_wake(&word, 1, 1ULL << 40)), -EINVAL);
    EXPECT_EQ(result_of(io::futex_wake(&word, ~0ULL)), 0);
}

TEST_F(Fallback, G4_AnUnreceivedPipeIsClosed) {
    auto makes = []() -> manual {
        int fds[2];
        co_await io::pipe(fds);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f) -> task<> {
        const manual victim = f();
        victim.start();
        co_return;
    };
    coil_test::run_on(context_, main(makes)); // leaks are found at the end of the test
}

TEST_F(Fallback, CallsThatWaitOrHaveNoSystemCallAreNotSupported) {
    const pipe_pair p;
    p.put("data");
    char buf[4];
    const std::uint32_t word = 0;
    ::siginfo_t info{};
    EXPECT_EQ(result_of(io::read(p.in, buf)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::write(p.out, "x")), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::read_fixed(p.in, buf, -1, 0)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::recv(p.in, buf)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::poll(p.in, 1)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::futex_wait(&word, 0)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::futex_waitv(std::span<const uring::futex_waiter>())), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::waitid(P_ALL, 0, &info, WEXITED)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::msg_ring(p.in, 0, 0)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(timeout(io::read(p.in, buf), 1s)), -EOPNOTSUPP);
}

TEST_F(Fallback, CallsOnADirectDescriptorHaveNoFallback) {
    const io::direct_descriptor slot{0};
    int value = 1;
    ::socklen_t length = sizeof value;
    EXPECT_EQ(result_of(io::ftruncate(slot, 1)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::listen(slot, 1)), -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::setsockopt(slot, SOL_SOCKET, SO_KEEPALIVE, &value, length)),
              -EOPNOTSUPP);
    EXPECT_EQ(result_of(io::getsockopt(slot, SOL_SOCKET, SO_KEEPALIVE, &value, &length)),
              -EOPNOTSUPP);
    std::array<::epoll_event, 1> events{};
    EXPECT_EQ(result_of(io::epoll_wait(slot, events)), -EOPNOTSUPP);
}

TEST_F(Fallback, G4_SocketDirectCreatesNoPlainDescriptorInstead) {
    EXPECT_EQ(result_of(io::socket_direct(AF_INET, SOCK_STREAM)),
              -EOPNOTSUPP); // leaks are found at the end of the test
}

TEST_F(Fallback, G13_FallbacksInAChainRunInOrder) {
    auto main = [](const temporary_directory& dir) -> task<> {
        EXPECT_EQ(co_await (io::mkdir(dir / "a", 0700) && io::mkdir(dir / "b", 0700)), 0);
        EXPECT_EQ(co_await (io::mkdir(dir / "a", 0700) && io::mkdir(dir / "c", 0700)), -ECANCELED);
        const descriptor tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        ::sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* const address = reinterpret_cast<const ::sockaddr*>(&any);
        const int one = 1;
        const int zero = 0;
        int value = 0;
        ::socklen_t length = sizeof value;
        EXPECT_EQ(co_await (io::nop() && io::setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &one, 4) &&
                            io::bind(tcp, address, sizeof any) && io::nop() && io::listen(tcp, 1) &&
                            io::getsockopt(tcp, SOL_SOCKET, SO_ACCEPTCONN, &value, &length)),
                  0);
        EXPECT_EQ(value, 1);
        EXPECT_EQ(
            co_await (io::setsockopt(-1, SOL_SOCKET, 1, &one, 4) && io::mkdir(dir / "c", 0700)),
            -ECANCELED);
        // If one call of a chain has no fallback, none of its calls is started.
        EXPECT_EQ(co_await (io::setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &zero, 4) &&
                            io::read(-1, {}) && io::nop()),
                  -EOPNOTSUPP);
        EXPECT_EQ(
            co_await (io::read(-1, {}) && io::setsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &zero, 4)),
            -EOPNOTSUPP);
        EXPECT_EQ(co_await io::getsockopt(tcp, SOL_SOCKET, SO_KEEPALIVE, &value, &length), 0);
        EXPECT_EQ(value, 1);
        EXPECT_EQ(co_await (io::nop() && io::read(-1, {})), -EOPNOTSUPP);
        EXPECT_EQ(co_await timeout(io::nop() && io::mkdir(dir / "d", 0700), 5s), 0);
    };
    coil_test::run_on(context_, main(dir_));
    EXPECT_TRUE(std::filesystem::exists(dir_ / "b"));
    EXPECT_FALSE(std::filesystem::exists(dir_ / "c"));
    EXPECT_TRUE(std::filesystem::exists(dir_ / "d"));
}

} // namespace
