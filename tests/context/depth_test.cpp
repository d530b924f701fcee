// Awaits that complete immediately do not grow the stack (guarantee G10). Debug builds use -O0,
// sanitizer builds run this under the sanitizers, the others use -O2.

#include "support/run.hpp"

#include <sys/resource.h>

using namespace coil;

namespace {

/// Ten million. Under sanitizers, which are slow, a million unless COIL_TEST_LONG is set; a million
/// frames also exceed any stack.
int ten_million() {
    return coil_test::sanitized ? coil_test::rounds(1'000'000, 10'000'000) : 10'000'000;
}

task<int> one() { co_return 1; }
task<> nothing() { co_return; }

TEST(Depth, G10_TenMillionAwaitsOfTasks) {
    auto loop = [](int n) -> task<int> {
        int sum = 0;
        for (int i = 0; i < n; ++i) {
            sum += co_await one();
        }
        co_return sum;
    };
    EXPECT_EQ(coil::run(loop(ten_million())), ten_million());
}

TEST(Depth, G10_AwaitsThatNeverSuspend) {
    auto loop = [](int n) -> task<int> {
        join_handle<> done = coil::spawn(nothing());
        while (!done.done()) {
            co_await yield();
        }
        int possible = 0;
        for (int i = 0; i < n; ++i) {
            possible += (co_await this_task::stop_token()).stop_possible() ? 1 : 0;
        }
        co_await done;
        co_return possible;
    };
    const int n = ten_million() / 10;
    EXPECT_EQ(coil::run(loop(n)), n);
}

TEST(Depth, G10_AChainOfAHundredThousandFramesUnwindsWithoutTheStack) {
    struct recursion {
        static task<int> down(int n) {
            if (n == 0) {
                co_await yield(); // the innermost frame waits, and the loop resumes it
                co_return 0;
            }
            co_return 1 + co_await down(n - 1);
        }
    };
    EXPECT_EQ(coil::run(recursion::down(100'000)), 100'000);
}

TEST(Depth, G10_AnExceptionThroughALongChain) {
    struct recursion {
        static task<int> down(int n) {
            if (n == 0) {
                co_await yield();
                throw 1;
            }
            co_return co_await down(n - 1);
        }
    };
    EXPECT_THROW(coil::run(recursion::down(1'000)), int);
}

TEST(Depth, G10_TasksThatSpawnTasksThatEndAtOnce) {
    struct relay {
        static task<> run(int left, long& sum) {
            ++sum;
            if (left > 0) {
                coil::co_spawn(run(left - 1, sum));
            }
            co_return;
        }
    };
    io_context ctx;
    long sum = 0;
    ctx.co_spawn(relay::run(300'000, sum));
    ctx.run();
    EXPECT_EQ(sum, 300'001);
}

TEST(Depth, G10_ReadsThatCompleteAtOnce) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    auto loop = [](int in, int out, int n) -> task<int> {
        int sum = 0;
        char c = 'x';
        for (int i = 0; i < n; ++i) {
            sum += co_await io::write(out, {&c, 1});
            sum += co_await io::read(in, {&c, 1});
        }
        co_return sum;
    };
    const int n = coil_test::rounds(20'000, 300'000);
    EXPECT_EQ(coil::run(loop(fds[0], fds[1], n)), 2 * n);
    ::close(fds[0]);
    ::close(fds[1]);
}

} // namespace
