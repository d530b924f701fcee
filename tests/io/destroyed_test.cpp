// A coroutine frame that is destroyed while its operation is in flight: nothing is written
// afterwards (G2), and descriptors that it would have received are closed (G4).

#include "io/support.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::listener;
using coil_test::manual;
using coil_test::pipe_pair;
using coil_test::socket_pair;

namespace {

class Destroyed : public ::testing::Test {};

/// Memory that outlives the frame reading into it.
struct canary {
    std::array<unsigned char, 4096> bytes;
    canary() { bytes.fill(0xa5); }
    [[nodiscard]] bool untouched() const {
        return std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0xa5; });
    }
};

template <class Make>
manual await_in(canary& into, Make make) {
    co_await make(into.bytes);
    ADD_FAILURE() << "the coroutine was resumed";
}

/// Destroys a frame while `make`'s operation is in flight; then `feed` delivers data.
template <class Make, class Feed>
task<> destroy_then_feed(canary& memory, Make make, Feed feed) {
    {
        manual victim = await_in(memory, make);
        victim.start();
        co_await yield();
        co_await io::nop(); // by now the victim's operation has been submitted
        victim.destroy();
    }
    feed();
    co_await sleep_for(2ms);
    EXPECT_TRUE(memory.untouched());
}

TEST_F(Destroyed, G2_WhileAReadOfAPipeIsInFlight_NoByteWrittenAfterwards) {
    canary memory;
    const pipe_pair p;
    coil::run(destroy_then_feed(
        memory, [&](auto& buf) { return io::read(p.in, buf); }, [&] { p.put("secret"); }));
    char buf[16];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 6); // the data is still there for others
}

TEST_F(Destroyed, G2_WhileARecvIsInFlight_NoByteWrittenAfterwards) {
    canary memory;
    const socket_pair s;
    coil::run(destroy_then_feed(
        memory, [&](auto& buf) { return io::recv(s.a, buf); },
        [&] { ASSERT_EQ(::send(s.b, "secret", 6, 0), 6); }));
}

TEST_F(Destroyed, G2_WhileARecvWithWaitallHasReceivedAPart) {
    canary memory;
    const socket_pair s;
    auto main = [](canary& m, const socket_pair& pair) -> task<> {
        manual victim = await_in(m, [&](auto& buf) { return io::recv(pair.a, buf, MSG_WAITALL); });
        victim.start();
        co_await yield();
        EXPECT_EQ(co_await io::send(pair.b, "part"), 4);
        co_await sleep_for(1ms);
        victim.destroy();
        const canary after = m; // includes the data so far; from now on nothing may change
        EXPECT_EQ(co_await io::send(pair.b, "more"), 4);
        co_await sleep_for(2ms);
        EXPECT_EQ(m.bytes, after.bytes);
    };
    coil::run(main(memory, s));
}

TEST_F(Destroyed, G2_BeforeTheOperationWasEvenSubmitted) {
    canary memory;
    const pipe_pair p;
    auto main = [](canary& m, const pipe_pair& pipe) -> task<> {
        {
            const manual victim = await_in(m, [&](auto& buf) { return io::read(pipe.in, buf); });
            victim.start();
        }
        pipe.put("secret");
        co_await sleep_for(2ms);
        EXPECT_TRUE(m.untouched());
    };
    coil::run(main(memory, p));
}

TEST_F(Destroyed, G2_WithALimitOnTheOperation) {
    canary memory;
    const pipe_pair p;
    coil::run(destroy_then_feed(
        memory, [&](auto& buf) { return timeout(io::read(p.in, buf), 1ms); },
        [&] { p.put("secret"); }));
}

TEST_F(Destroyed, G2_WithAnotherReaderOfTheSameDescriptor) {
    canary memory;
    const pipe_pair p;
    auto main = [](canary& m, const pipe_pair& pipe) -> task<> {
        auto other = [](int fd) -> task<int> {
            char buf[16];
            co_return co_await io::read(fd, buf);
        };
        manual victim = await_in(m, [&](auto& buf) { return io::read(pipe.in, buf); });
        victim.start();
        auto survivor = coil::spawn(other(pipe.in));
        co_await yield();
        victim.destroy();
        pipe.put("data");
        EXPECT_EQ(co_await survivor, 4);
        EXPECT_TRUE(m.untouched());
    };
    coil::run(main(memory, p));
}

TEST_F(Destroyed, G2_AtEveryMomentAroundTheArrivalOfData) {
    auto reads = [](canary& m, int fd) -> manual { co_await io::read(fd, m.bytes); };
    auto main = [](auto make, canary& m, const pipe_pair& pipe, int turns) -> task<> {
        manual victim = make(m, pipe.in);
        victim.start();
        co_await yield();
        pipe.put("data");
        for (int i = 0; i < turns; ++i) {
            co_await yield();
        }
        victim.destroy();
        const canary after = m;
        pipe.put("more");
        co_await sleep_for(1ms);
        EXPECT_EQ(m.bytes, after.bytes) << turns;
    };
    for (int turns = 0; turns < 6; ++turns) {
        canary memory;
        const pipe_pair p;
        coil::run(main(reads, memory, p, turns));
    }
}

TEST_F(Destroyed, G4_WhileAnAcceptIsInFlight_TheConnectionStaysInTheBacklog) {
    const listener l;
    auto accepts = [](int fd) -> manual {
        co_await io::accept(fd);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, const listener& server) -> task<> {
        {
            const manual victim = f(server.socket);
            victim.start();
            co_await yield();
            co_await io::nop();
        }
        const coil_test::descriptor client = server.connect();
        const int fd = co_await io::accept(server.socket);
        EXPECT_GE(fd, 0);
        EXPECT_EQ(co_await io::close(fd), 0);
    };
    coil::run(main(accepts, l));
}

TEST_F(Destroyed, G4_AfterTheAcceptWon_TheDescriptorIsClosed) {
    // The client connects between submission and destruction, a different number of turns before
    // the destruction each time: the accept is pending, complete, in the ready queue, or resumed.
    auto accepts = [](int fd) -> manual {
        const int accepted = co_await io::accept(fd);
        ::close(accepted);
    };
    auto main = [](auto f, const listener& server, int turns) -> task<> {
        manual victim = f(server.socket);
        victim.start();
        co_await yield();
        const coil_test::descriptor client = server.connect();
        for (int i = 0; i < turns; ++i) {
            co_await yield();
        }
        victim.destroy();
    };
    for (int turns = 0; turns < 6; ++turns) {
        const listener l;
        coil::run(main(accepts, l, turns));
    }
}

TEST_F(Destroyed, G4_AfterOpenAndSocketWon_TheDescriptorIsClosed) {
    auto opens = [](int which) -> manual {
        const int fd = which == 0 ? co_await io::openat(AT_FDCWD, "/dev/null", O_RDONLY)
                                  : co_await io::socket(AF_INET, SOCK_STREAM);
        ::close(fd);
    };
    auto main = [](auto f, int which, int turns) -> task<> {
        manual victim = f(which);
        victim.start();
        for (int i = 0; i < turns; ++i) {
            co_await yield();
        }
        victim.destroy();
    };
    for (int turns = 0; turns < 6; ++turns) {
        coil::run(main(opens, 0, turns));
        coil::run(main(opens, 1, turns));
    }
}

TEST_F(Destroyed, G5_AHundredFramesAtOnceEachWithItsRead) {
    const pipe_pair p;
    auto reads = [](int fd) -> manual {
        char c;
        co_await io::read(fd, {&c, 1});
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, int fd) -> task<> {
        std::vector<manual> victims;
        for (int i = 0; i < 100; ++i) {
            victims.push_back(f(fd));
            victims.back().start();
        }
        co_await yield();
        co_await io::nop();
    };
    coil::run(main(reads, p.in));
}

TEST(DestroyedDeathTest, G2_OnAnotherThreadEndsTheProgramWithAMessage) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const pipe_pair p;
            auto reads = [](int fd) -> manual {
                char c;
                co_await io::read(fd, {&c, 1});
            };
            auto main = [](auto f, int fd) -> task<> {
                manual victim = f(fd);
                victim.start();
                co_await yield();
                std::thread([&] { victim.destroy(); }).join();
            };
            coil::run(main(reads, p.in));
        },
        "destroyed on a thread other than its context's");
}

} // namespace
