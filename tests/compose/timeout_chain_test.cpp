// Timeouts inside of chains and around them.

#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using std::chrono::steady_clock;

namespace {

class TimeoutChain : public ::testing::Test {
protected:
    pipe_pair a_;
    pipe_pair b_;
};

TEST_F(TimeoutChain, TheRestRunsIfTheLimitDoesNotExpire) {
    socket_pair s;
    ASSERT_EQ(::send(s.b, "hi", 2, 0), 2);
    auto main = [](int fd) -> task<int> {
        char buf[8];
        co_return co_await (timeout(io::recv(fd, buf), 10s) && io::close(fd));
    };
    const coil_test::open_file file(s.a);
    EXPECT_EQ(coil::run(main(s.a)), 0);
    EXPECT_FALSE(file.is_open());
    (void)s.a.release();
}

TEST_F(TimeoutChain, TheRestDoesNotRunIfTheLimitExpires) {
    const socket_pair s;
    auto main = [](int fd) -> task<int> {
        char buf[8];
        co_return co_await (timeout(io::recv(fd, buf), 5ms) && io::close(fd));
    };
    const auto begin = steady_clock::now();
    EXPECT_EQ(coil::run(main(s.a)), -ETIMEDOUT);
    EXPECT_GE(steady_clock::now() - begin, 5ms);
    EXPECT_TRUE(coil_test::is_open(s.a));
}

TEST_F(TimeoutChain, ALimitOnTheLastOperation) {
    auto main = [](const pipe_pair& a, const pipe_pair& b) -> task<> {
        char c;
        a.put("x");
        EXPECT_EQ(co_await (io::read(a.in, {&c, 1}) && timeout(io::read(b.in, {&c, 1}), 5ms)),
                  -ETIMEDOUT);
        a.put("x");
        b.put("y");
        EXPECT_EQ(co_await (io::read(a.in, {&c, 1}) && timeout(io::read(b.in, {&c, 1}), 5s)), 1);
        EXPECT_EQ(c, 'y');
        a.put("x");
        EXPECT_EQ(co_await (io::read(a.in, {&c, 1}) && timeout(io::read(-1, {&c, 1}), 5s)), -EBADF);
    };
    coil::run(main(a_, b_));
}

TEST_F(TimeoutChain, ALimitCountsFromTheStartOfItsOperation) {
    auto feed = [](const pipe_pair& a, const pipe_pair& b) -> task<> {
        co_await sleep_for(40ms); // longer than the timeout of the second
        a.put("x");
        co_await sleep_for(1ms);
        b.put("y");
    };
    auto main = [](auto f, const pipe_pair& a, const pipe_pair& b) -> task<int> {
        coil::co_spawn(f(a, b));
        char c;
        co_return co_await (io::read(a.in, {&c, 1}) && timeout(io::read(b.in, {&c, 1}), 20ms));
    };
    EXPECT_EQ(coil::run(main(feed, a_, b_)), 1);
}

TEST_F(TimeoutChain, EachOperationHasItsOwnLimit) {
    auto main = [](const pipe_pair& a, const pipe_pair& b) -> task<> {
        char c;
        a.put("xx");
        b.put("y");
        EXPECT_EQ(
            co_await (timeout(io::read(a.in, {&c, 1}), 5s) && timeout(io::read(b.in, {&c, 1}), 5s)),
            1);
        EXPECT_EQ(co_await (timeout(io::read(a.in, {&c, 1}), 5s) &&
                            timeout(io::read(b.in, {&c, 1}), 3ms)),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await (timeout(io::read(a.in, {&c, 1}), 3ms) &&
                            timeout(io::read(b.in, {&c, 1}), 5s)),
                  -ETIMEDOUT);
    };
    coil::run(main(a_, b_));
}

TEST_F(TimeoutChain, AtATimeInsideOfAChain) {
    auto main = [](const pipe_pair& a) -> task<> {
        char c;
        const auto when = steady_clock::now() + 5ms;
        EXPECT_EQ(co_await (timeout_at(io::read(a.in, {&c, 1}), when) && io::nop()), -ETIMEDOUT);
        EXPECT_GE(steady_clock::now(), when);
        a.put("x");
        EXPECT_EQ(
            co_await (timeout_at(io::read(a.in, {&c, 1}), steady_clock::now() + 5s) && io::nop()),
            0);
    };
    coil::run(main(a_));
}

TEST_F(TimeoutChain, AZeroLimitInsideOfAChain) {
    auto main = [](const pipe_pair& a) -> task<> {
        char c;
        EXPECT_EQ(co_await (timeout(io::read(a.in, {&c, 1}), 0s) && io::nop()), -ETIMEDOUT);
        EXPECT_EQ(co_await (timeout(io::read(a.in, {&c, 1}), -1s) && io::nop()), -ETIMEDOUT);
        a.put("x");
        EXPECT_EQ(
            co_await (timeout(io::read(a.in, {&c, 1}), std::chrono::hours::max()) && io::nop()), 0);
    };
    coil::run(main(a_));
}

TEST_F(TimeoutChain, ALimitAroundTheWholeChain) {
    auto main = [](const pipe_pair& a, const pipe_pair& b) -> task<> {
        char c = '.';
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await timeout(io::read(a.in, {&c, 1}) && io::read(b.in, {&c, 1}), 4ms),
                  -ETIMEDOUT);
        a.put("x");
        EXPECT_EQ(co_await timeout(io::read(a.in, {&c, 1}) && io::read(b.in, {&c, 1}), 4ms),
                  -ETIMEDOUT);
        EXPECT_GE(steady_clock::now() - begin, 8ms);
        EXPECT_EQ(c, 'x'); // the first operation had completed
        a.put("x");
        b.put("y");
        EXPECT_EQ(co_await timeout(io::read(a.in, {&c, 1}) && io::read(b.in, {&c, 1}), 1h), 1);
        EXPECT_EQ(c, 'y');
    };
    coil::run(main(a_, b_));
}

TEST_F(TimeoutChain, ALimitAroundAChainWithLimitsInside) {
    auto main = [](const pipe_pair& a) -> task<> {
        char c;
        EXPECT_EQ(co_await timeout(timeout(io::read(a.in, {&c, 1}), 1h) && io::nop(), 3ms),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(timeout(io::read(a.in, {&c, 1}), 3ms) && io::nop(), 1h),
                  -ETIMEDOUT);
    };
    coil::run(main(a_));
}

TEST_F(TimeoutChain, G3_WithAStopTokenAndALimitInside) {
    auto chain = [](const pipe_pair& a) -> task<int> {
        char c;
        co_return co_await (timeout(io::read(a.in, {&c, 1}), 1h) && io::nop());
    };
    auto main = [](auto f, const pipe_pair& a) -> task<> {
        auto h = coil::spawn(f(a));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
    };
    coil::run(main(chain, a_));
}

TEST_F(TimeoutChain, G2_DestroyedWithALimitInside) {
    auto chain = [](const pipe_pair& a) -> coil_test::manual {
        char c;
        co_await (timeout(io::read(a.in, {&c, 1}), 2ms) && io::nop());
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, const pipe_pair& a) -> task<> {
        {
            const coil_test::manual victim = f(a);
            victim.start();
            co_await yield();
            co_await io::nop();
        }
        co_await sleep_for(5ms);
    };
    coil::run(main(chain, a_));
}

TEST_F(TimeoutChain, G4_OfADescriptor) {
    const coil_test::listener l;
    auto main = [](const coil_test::listener& server) -> task<> {
        EXPECT_EQ(co_await (timeout(io::accept(server.socket), 2ms) && io::nop()), -ETIMEDOUT);
        const auto client = server.connect();
        EXPECT_EQ(co_await (timeout(io::accept(server.socket), 5s) && io::nop()), 0);
        const auto another = server.connect();
        const coil_test::descriptor fd{
            co_await (io::nop() && timeout(io::accept(server.socket), 5s))};
        EXPECT_GE(fd, 0);
    };
    coil::run(main(l));
}

TEST_F(TimeoutChain, G3_RacesInsideOfAChain) {
    auto feed = [](int fd, std::chrono::microseconds after) -> task<> {
        co_await sleep_for(after);
        co_await io::write(fd, "x");
    };
    auto main = [](auto f, const pipe_pair& p, int& lost, int& won) -> task<> {
        auto limit = 200us; // adapts to the speed of the machine, so that either may win
        for (int i = 0; i < coil_test::rounds(200, 5000); ++i) {
            auto feeding = coil::spawn(f(p.out, 200us));
            char c = 0;
            const int n = co_await (timeout(io::read(p.in, {&c, 1}), limit) && io::nop());
            co_await feeding;
            limit = n == -ETIMEDOUT ? std::min(limit * 9 / 8 + 1us, 100'000us) : limit * 8 / 9;
            if (n == -ETIMEDOUT) {
                ++lost;
                EXPECT_EQ((co_await io::read(p.in, {&c, 1})), 1);
            } else {
                ++won;
                EXPECT_EQ(n, 0);
            }
            EXPECT_EQ(c, 'x');
        }
    };
    int expired = 0;
    int completed = 0;
    coil::run(main(feed, a_, expired, completed));
    // the fault backend may delay operations that should complete in time
    if (!coil_test::under_faults()) {
        EXPECT_GT(expired, 0);
        EXPECT_GT(completed, 0);
    }
}

} // namespace
