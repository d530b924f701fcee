// Limits do not break the loop: full queues, overflowed completions, a bound on operations in
// flight (guarantee G6).

#include "support/descriptors.hpp"
#include "support/fault_environment.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <numeric>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/resource.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Limits : public ::testing::Test {};

task<> nops(int count, long& done) {
    for (int i = 0; i < count; ++i) {
        EXPECT_EQ(co_await io::nop(), 0);
        ++done;
    }
}

TEST_F(Limits, G6_AHundredThousandSpawnsInOneTurn) {
    auto child = [](int i, long& sum) -> task<> {
        co_await yield();
        sum += i;
    };
    auto parent = [](auto f, long& sum) -> task<> {
        for (int i = 0; i < 100'000; ++i) {
            coil::co_spawn(f(i, sum));
        }
        co_return;
    };
    io_context ctx;
    long sum = 0;
    ctx.co_spawn(parent(child, sum));
    ctx.run();
    EXPECT_EQ(sum, 100'000L * 99'999 / 2);
}

TEST_F(Limits, G6_TenThousandOperationsThroughEightEntries) {
    io_context ctx(8);
    ASSERT_EQ(ctx.loop().ring().sq_entries(), 8U);
    long done = 0;
    for (int i = 0; i < 10'000; ++i) {
        ctx.co_spawn(nops(3, done));
    }
    ctx.run();
    EXPECT_EQ(done, 30'000);
}

TEST_F(Limits, G6_TenThousandReadsInFlightThroughEightEntries) {
    const coil_test::pipe_pair p;
    io_context ctx(8);
    long received = 0;
    auto read = [](int fd, long& n) -> task<> {
        char c;
        n += co_await io::read(fd, {&c, 1});
    };
    auto feed = [](int fd) -> task<> {
        const std::string data(1000, 'x');
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(co_await io::write(fd, data), 1000);
        }
    };
    for (int i = 0; i < 10'000; ++i) {
        ctx.co_spawn(read(p.in, received));
    }
    ctx.co_spawn(feed(p.out));
    ctx.run();
    EXPECT_EQ(received, 10'000);
}

TEST_F(Limits, G6_MoreCompletionsAtOnceThanTheQueueHolds) {
    io_context ctx(coil_test::with([](auto& o) {
        o.entries = 8;
        o.cq_entries = 8;
    }));
    ASSERT_EQ(ctx.loop().ring().cq_entries(), 8U);
    long done = 0;
    for (int i = 0; i < 5'000; ++i) {
        ctx.co_spawn(nops(2, done));
    }
    ctx.run();
    EXPECT_EQ(done, 10'000);
    EXPECT_EQ(ctx.loop().ring().cq_overflow(), 0U);
}

TEST_F(Limits, G6_ThousandsCompleteAtOneMoment) {
    // Two thousand polls of one descriptor, all of which complete when it becomes readable.
    const coil_test::pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) {
        o.entries = 16;
        o.cq_entries = 16;
    }));
    int woken = 0;
    auto wait = [](int fd, int& n) -> task<> {
        EXPECT_GT(co_await io::poll(fd, POLLIN), 0);
        ++n;
    };
    auto release = [](int fd) -> task<> {
        co_await sleep_for(2ms);
        EXPECT_EQ(co_await io::write(fd, "x"), 1);
    };
    for (int i = 0; i < 2'000; ++i) {
        ctx.co_spawn(wait(p.in, woken));
    }
    ctx.co_spawn(release(p.out));
    ctx.run();
    EXPECT_EQ(woken, 2'000);
}

TEST_F(Limits, G6_MaxInFlightHoldsBackInOrder) {
    COIL_SKIP_UNDER_FAULTS("it takes the order of completions for that of submissions");
    for (const unsigned most : {0U, 1U, 2U, 7U}) {
        io_context ctx(coil_test::with([&](auto& o) { o.max_in_flight = most; }));
        std::vector<int> order;
        auto op = [](int i, std::vector<int>& to) -> task<> {
            EXPECT_EQ(co_await io::nop(), 0);
            to.push_back(i);
        };
        for (int i = 0; i < 1000; ++i) {
            ctx.co_spawn(op(i, order));
        }
        ctx.run();
        std::vector<int> expected(1000);
        std::iota(expected.begin(), expected.end(), 0);
        EXPECT_EQ(order, expected) << most;
        EXPECT_GT(ctx.metrics().back_pressure_waits, 0U);
    }
}

TEST_F(Limits, G6_MaxInFlightCountsAChainsEntriesAndNeverStarvesOne) {
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 2; }));
    long done = 0;
    auto chain = [](long& n) -> task<> {
        // Longer than the bound: submitted when nothing else is in flight.
        EXPECT_EQ(co_await (io::nop() && io::nop() && io::nop()), 0);
        ++n;
    };
    for (int i = 0; i < 100; ++i) {
        ctx.co_spawn(nops(1, done));
        ctx.co_spawn(chain(done));
    }
    ctx.run();
    EXPECT_EQ(done, 200);
}

TEST_F(Limits, G3_HeldBackOperationsAreCancelledAtOnce) {
    const coil_test::pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 1; }));
    auto read = [](int fd) -> task<int> {
        char c;
        co_return co_await io::read(fd, {&c, 1});
    };
    auto main = [](auto f, const coil_test::pipe_pair& pipe) -> task<> {
        auto first = coil::spawn(f(pipe.in));
        auto second = coil::spawn(f(pipe.in));
        auto third = coil::spawn(f(pipe.in));
        co_await yield();
        co_await yield();
        second.cancel();
        EXPECT_EQ(co_await second, -ECANCELED);
        EXPECT_FALSE(first.done());
        pipe.put("ab");
        EXPECT_EQ(co_await first, 1);
        EXPECT_EQ(co_await third, 1);
    };
    coil_test::run_on(ctx, main(read, p));
}

TEST_F(Limits, G6_WithoutDescriptorsTheConstructorThrows) {
    const std::string complaint = coil_test::in_child([]() -> std::string {
        const ::rlimit none{3, 3};
        ::setrlimit(RLIMIT_NOFILE, &none);
        try {
            const io_context ctx;
        } catch (const std::system_error& e) {
            return e.code() == std::errc::too_many_files_open ? "" : e.what();
        }
        return "did not throw";
    });
    EXPECT_EQ(complaint, "");
}

TEST_F(Limits, ZeroEntriesAreRefused) { EXPECT_THROW(io_context(0), std::system_error); }

TEST_F(Limits, EntriesAreRoundedUpAndClamped) {
    io_context odd(5);
    EXPECT_EQ(odd.loop().ring().sq_entries(), 8U);
    io_context huge(1U << 30);
    EXPECT_GE(huge.loop().ring().sq_entries(), 4096U);
}

} // namespace
