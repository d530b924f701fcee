// timeout(op, d): a single operation with a limit.

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::pipe_pair;
using std::chrono::steady_clock;
using std::chrono::system_clock;

namespace {

class Timeout : public ::testing::Test {
protected:
    pipe_pair pipe_;
};

template <class Limit>
task<int> limited_read(int fd, Limit limit) {
    char c;
    co_return co_await timeout(io::read(fd, {&c, 1}), limit);
}

TEST_F(Timeout, Expires) {
    const auto begin = steady_clock::now();
    EXPECT_EQ(coil::run(limited_read(pipe_.in, 5ms)), -ETIMEDOUT);
    const auto took = steady_clock::now() - begin;
    EXPECT_GE(took, 5ms);
    EXPECT_LT(took, 1s);
}

TEST_F(Timeout, DoesNotExpire) {
    pipe_.put("x");
    EXPECT_EQ(coil::run(limited_read(pipe_.in, 1h)), 1);
}

TEST_F(Timeout, DoesNotKeepTheContextWhenTheOperationIsDone) {
    pipe_.put("x");
    const auto begin = steady_clock::now();
    io_context ctx;
    EXPECT_EQ(coil_test::run_on(ctx, limited_read(pipe_.in, 5s)), 1);
    EXPECT_LT(steady_clock::now() - begin, 2s);
}

TEST_F(Timeout, AnErrorOfTheOperationIsReturned) {
    EXPECT_EQ(coil::run(limited_read(-1, 1h)), -EBADF);
}

TEST_F(Timeout, AZeroLimitExpiresAtOnce) {
    EXPECT_EQ(coil::run(limited_read(pipe_.in, 0ms)), -ETIMEDOUT);
    EXPECT_EQ(coil::run(limited_read(pipe_.in, -3h)), -ETIMEDOUT);
}

TEST_F(Timeout, TheLongestDurationDoesNotOverflow) {
    pipe_.put("xyz");
    EXPECT_EQ(coil::run(limited_read(pipe_.in, std::chrono::hours::max())), 1);
    EXPECT_EQ(coil::run(limited_read(pipe_.in, std::chrono::nanoseconds::max())), 1);
    EXPECT_EQ(coil::run(limited_read(pipe_.in, std::chrono::duration<double>(
                                                   std::numeric_limits<double>::infinity()))),
              1);
}

TEST_F(Timeout, TimePointsOfEitherClock) {
    auto main = [](int fd) -> task<> {
        char c;
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await timeout_at(io::read(fd, {&c, 1}), begin + 4ms), -ETIMEDOUT);
        EXPECT_GE(steady_clock::now(), begin + 4ms);
        const auto then = system_clock::now() + 4ms;
        EXPECT_EQ(co_await timeout_at(io::read(fd, {&c, 1}), then), -ETIMEDOUT);
        EXPECT_GE(system_clock::now() + 1ms, then);
        EXPECT_EQ(co_await timeout_at(io::read(fd, {&c, 1}), begin - 1h), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout_at(io::read(fd, {&c, 1}), system_clock::time_point::min()),
                  -ETIMEDOUT);
        EXPECT_LT(steady_clock::now() - begin, 2s);
    };
    coil::run(main(pipe_.in));
}

TEST_F(Timeout, G3_EitherTheLimitOrTheCompletionWins) {
    int expired = 0;
    int completed = 0;
    auto feed = [](int fd, std::chrono::microseconds after) -> task<> {
        co_await sleep_for(after);
        co_await io::write(fd, "x");
    };
    auto main = [](auto f, const pipe_pair& p, int& lost, int& won) -> task<> {
        auto limit = 200us; // adapts to the speed of the machine, so that either may win
        for (int i = 0; i < coil_test::rounds(300, 5000); ++i) {
            auto feeding = coil::spawn(f(p.out, 200us));
            char c = 0;
            const int n = co_await timeout(io::read(p.in, {&c, 1}), limit);
            co_await feeding;
            limit = n == -ETIMEDOUT ? std::min(limit * 9 / 8 + 1us, 100'000us) : limit * 8 / 9;
            if (n == -ETIMEDOUT) {
                ++lost;
                EXPECT_EQ((co_await io::read(p.in, {&c, 1})), 1); // the data is not lost
            } else {
                ++won;
                EXPECT_EQ(n, 1);
            }
            EXPECT_EQ(c, 'x');
        }
    };
    coil::run(main(feed, pipe_, expired, completed));
    EXPECT_GT(expired, 0);
    EXPECT_GT(completed, 0);
}

TEST_F(Timeout, G3_DataThatComesBeforeTheRequestToCancelIsDelivered) {
    auto guard = std::make_shared<coil_test::door_backend::guard>();
    guard->before_enter = [&](coil_test::door_backend& k,
                              const std::vector<coil_test::sqe>& entries, unsigned) {
        if (coil_test::contains(entries, uring::opcode::async_cancel)) {
            pipe_.put("x");
            k.post_completions();
        }
        return 0;
    };
    io_context ctx(coil_test::with(
        [&](auto& o) { o.make_backend = coil_test::door_backend::factory(guard); }));
    EXPECT_EQ(coil_test::run_on(ctx, limited_read(pipe_.in, 1ms)), 1);
}

TEST_F(Timeout, G3_CancelledBeforeItExpires) {
    auto main = [](int fd) -> task<> {
        const auto begin = steady_clock::now();
        auto h = coil::spawn(limited_read(fd, 1h));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
        EXPECT_LT(steady_clock::now() - begin, 1s);
    };
    coil::run(main(pipe_.in));
}

TEST_F(Timeout, G3_CancelledAtTheMomentItExpires) {
    auto main = [](int fd) -> task<> {
        for (int i = 0; i < coil_test::rounds(200, 5000); ++i) {
            auto h = coil::spawn(limited_read(fd, 100us));
            co_await sleep_for(std::chrono::microseconds(50 + i % 100));
            h.cancel();
            const int result = co_await h;
            EXPECT_TRUE(result == -ETIMEDOUT || result == -ECANCELED) << result;
        }
    };
    coil::run(main(pipe_.in));
}

TEST_F(Timeout, G2_DestroyedBeforeItExpires) {
    auto reads = [](int fd) -> coil_test::manual {
        char c;
        co_await timeout(io::read(fd, {&c, 1}), 2ms);
        ADD_FAILURE() << "the coroutine was resumed";
    };
    auto main = [](auto f, int fd) -> task<> {
        {
            const coil_test::manual victim = f(fd);
            victim.start();
            co_await yield();
        }
        co_await sleep_for(5ms);
    };
    coil::run(main(reads, pipe_.in));
}

TEST_F(Timeout, G2_DestroyedAfterItExpiredAndBeforeItIsResumed) {
    auto reads = [](int fd) -> coil_test::manual {
        char c;
        co_await timeout(io::read(fd, {&c, 1}), 0ms);
    };
    auto main = [](auto f, int fd) -> task<> {
        for (int turns = 0; turns < 6; ++turns) {
            const coil_test::manual victim = f(fd);
            victim.start();
            for (int i = 0; i < turns; ++i) {
                co_await yield();
            }
        }
    };
    coil::run(main(reads, pipe_.in));
}

TEST_F(Timeout, G4_OfAnAcceptDoesNotLeak) {
    const coil_test::listener l;
    auto main = [](const coil_test::listener& server) -> task<> {
        EXPECT_EQ(co_await timeout(io::accept(server.socket), 1ms), -ETIMEDOUT);
        const auto client = server.connect();
        const coil_test::descriptor fd{co_await timeout(io::accept(server.socket), 1h)};
        EXPECT_GE(fd, 0);
    };
    coil::run(main(l));
}

TEST_F(Timeout, ThousandsAtOnceHalfOfWhichExpire) {
    int expired = 0;
    int completed = 0;
    auto one = [](int fd, std::chrono::milliseconds limit, int& lost, int& won) -> task<> {
        char c;
        const int n = co_await timeout(io::read(fd, {&c, 1}), limit);
        (n == 1 ? won : lost) += 1;
    };
    auto feed = [](int fd) -> task<> {
        co_await sleep_for(20ms);
        co_await io::write(fd, std::string(1000, 'x'));
    };
    io_context ctx(64);
    for (int i = 0; i < 2000; ++i) {
        ctx.co_spawn(one(pipe_.in, i % 2 == 0 ? 3ms : 1h * 1, expired, completed));
    }
    ctx.co_spawn(feed(pipe_.out));
    ctx.run();
    EXPECT_EQ(expired, 1000);
    EXPECT_EQ(completed, 1000);
}

} // namespace
