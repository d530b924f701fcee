// eager(op): starts before it is awaited.

#include "io/support.hpp"

#include <array>
#include <deque>
#include <list>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::listener;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::socket_pair;

namespace {

class Eager : public ::testing::Test {};

using any_eager = eager_operation<operation::element_type>;

int unread(int fd) {
    int n = -1;
    ::ioctl(fd, FIONREAD, &n);
    return n;
}

TEST_F(Eager, RunsBeforeItIsAwaited) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        auto pending = eager(io::write(pipe.out, "hello"));
        EXPECT_FALSE(pending.is_complete());
        while (!pending.is_complete()) {
            co_await yield();
        }
        EXPECT_EQ(unread(pipe.in), 5);
        EXPECT_EQ(co_await pending, 5);
    };
    coil::run(main(p));
}

TEST_F(Eager, MayBeAwaitedImmediately) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[8];
        auto pending = eager(io::read(pipe.in, buf));
        auto writer = [](int fd) -> task<> { EXPECT_EQ(co_await io::write(fd, "x"), 1); };
        co_spawn(writer(pipe.out));
        EXPECT_EQ(co_await pending, 1);
        EXPECT_EQ(buf[0], 'x');
        EXPECT_EQ(co_await eager(io::write(pipe.out, "yz")), 2); // a temporary may be awaited, too
    };
    coil::run(main(p));
}

TEST_F(Eager, KeepsItsResultUntilItIsAwaited) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[8];
        auto good = eager(io::read(pipe.in, buf));
        auto bad = eager(io::read(-1, buf));
        pipe.put("abc");
        co_await sleep_for(3ms);
        EXPECT_TRUE(good.is_complete());
        EXPECT_TRUE(bad.is_complete());
        EXPECT_EQ(co_await bad, -EBADF);
        EXPECT_EQ(co_await good, 3);
        EXPECT_EQ(std::string_view(buf, 3), "abc");
    };
    coil::run(main(p));
}

TEST_F(Eager, StartedBeforeASuspension_IsAwaitedAfterIt) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::array<char, 8> a{};
        std::array<char, 8> b{};
        auto first = eager(io::read(pipe.in, {a.data(), 1}));
        EXPECT_EQ(co_await io::write(pipe.out, "12"), 2);
        co_await yield();
        auto second = eager(io::read(pipe.in, b));
        EXPECT_EQ(co_await second, 1);
        EXPECT_EQ(co_await first, 1);
        EXPECT_EQ(a[0], '1');
        EXPECT_EQ(b[0], '2');
    };
    coil::run(main(p));
}

TEST_F(Eager, AcceptsAChain) {
    const pipe_pair p;
    const pipe_pair empty;
    auto main = [](const pipe_pair& pipe, int silent) -> task<> {
        char buf[8];
        auto good = eager(io::write(pipe.out, "chain") && io::read(pipe.in, buf));
        auto bad = eager(io::read(-1, buf) && io::nop());
        auto hard = eager(hard_link(io::read(-1, buf), io::nop()));
        auto limited = eager(timeout(io::read(silent, {buf + 5, 1}), 1ms) && io::nop());
        while (!good.is_complete() || !bad.is_complete() || !hard.is_complete()) {
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(co_await good, 5);
        EXPECT_EQ(co_await bad, -ECANCELED);
        EXPECT_EQ(co_await hard, 0);
        EXPECT_EQ(co_await limited, -ETIMEDOUT);
    };
    coil::run(main(p, empty.in));
}

TEST_F(Eager, AcceptsAnOperationWithATimeout) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[8];
        auto never = eager(timeout(io::read(pipe.in, buf), 2ms));
        EXPECT_EQ(co_await never, -ETIMEDOUT);
        auto unawaited = eager(timeout(io::read(pipe.in, buf), 1ms));
        while (!unawaited.is_complete()) { // its timeout began when it started
            co_await sleep_for(1ms);
        }
        EXPECT_EQ(co_await unawaited, -ETIMEDOUT);
        auto quick = eager(timeout(io::write(pipe.out, "abc"), 1ms));
        co_await sleep_for(5ms); // the timeout expires after the write is complete
        EXPECT_EQ(co_await quick, 3);
        const auto dropped = eager(timeout(io::read(pipe.in, {buf, 2}), 1h));
        EXPECT_EQ(co_await timeout(io::poll(pipe.in, POLLIN), 1s), static_cast<int>(POLLIN));
    };
    coil::run(main(p));
}

TEST_F(Eager, G3_CancelledByTheStopTokenOfItsAwaiter) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        auto waits = [](int fd) -> task<int> {
            char c;
            auto pending = eager(io::read(fd, {&c, 1}));
            co_return co_await pending;
        };
        auto h = spawn(waits(pipe.in));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
    };
    coil::run(main(p));
}

TEST_F(Eager, G3_AnEarlierStopCancelsItWhenItIsAwaited) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        auto waits = [](const pipe_pair& q) -> task<int> {
            char c;
            auto pending = eager(io::read(q.in, {&c, 1}));
            while (!(co_await this_task::stop_token()).stop_requested()) {
                co_await yield();
            }
            EXPECT_FALSE(pending.is_complete());
            const int result = co_await pending;
            EXPECT_EQ(co_await io::nop(), -ECANCELED);
            auto complete = eager(io::write(q.out, "x")); // no stop token applies to it
            while (!complete.is_complete()) {
                co_await yield();
            }
            EXPECT_EQ(co_await complete, 1); // an available result is returned
            co_return result;
        };
        auto h = spawn(waits(pipe));
        co_await sleep_for(1ms);
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
    };
    coil::run(main(p));
}

TEST_F(Eager, G3_CancelledByItsMemberFunction) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[2];
        auto pending = eager(io::read(pipe.in, buf));
        pending.cancel();
        pending.cancel(); // a second call has no effect
        EXPECT_EQ(co_await pending, -ECANCELED);
        auto in_flight = eager(io::read(pipe.in, buf));
        co_await io::nop();
        in_flight.cancel();
        EXPECT_EQ(co_await in_flight, -ECANCELED);
        auto complete = eager(io::write(pipe.out, "x"));
        co_await io::nop();
        complete.cancel();
        EXPECT_EQ(co_await complete, 1);
    };
    coil::run(main(p));
}

TEST_F(Eager, ManyInAListAreAwaitedInAnyOrder) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::list<any_eager> all;
        for (int i = 0; i < 10; ++i) {
            all.emplace_back(io::nop());
        }
        std::deque<any_eager> reads;
        char buf[10];
        for (int i = 0; i < 10; ++i) {
            reads.emplace_back(io::read(pipe.in, {&buf[i], 1}));
        }
        for (auto i = all.rbegin(); i != all.rend(); ++i) {
            EXPECT_EQ(co_await *i, 0);
        }
        all.clear();
        EXPECT_EQ(co_await io::write(pipe.out, "0123456789"), 10);
        int sum = 0;
        for (auto& each : reads) {
            sum += co_await each;
        }
        EXPECT_EQ(sum, 10);
    };
    coil::run(main(p));
}

TEST_F(Eager, G6_TwentyThousandAtOnce) {
    auto main = []() -> task<> {
        std::list<any_eager> all;
        for (int i = 0; i < 20'000; ++i) {
            all.emplace_back(io::nop());
        }
        int done = 0;
        for (auto& each : all) {
            EXPECT_EQ(co_await each, 0);
            ++done;
        }
        EXPECT_EQ(done, 20'000);
    };
    coil::run(main());
}

TEST_F(Eager, G6_TwentyThousandThatWaitAreDropped) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        std::list<any_eager> all;
        std::array<char, 1> never{};
        for (int i = 0; i < coil_test::rounds(5'000, 20'000); ++i) {
            all.emplace_back(io::read(pipe.in, never));
        }
        co_await io::nop();
        all.clear();
        pipe.put("x");
        EXPECT_EQ(never[0], 0);
        EXPECT_EQ(co_await io::read(pipe.in, never), 1); // no other read took it
    };
    coil::run(main(p));
}

TEST_F(Eager, HeldBackByBackPressure_Runs_IsCancelled_IsDropped) {
    const pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) { o.max_in_flight = 2; }));
    auto main = [](const pipe_pair& pipe) -> task<> {
        char buf[4];
        auto a = eager(io::read(pipe.in, {buf, 1}));
        auto b = eager(io::read(pipe.in, {buf + 1, 1}));
        auto cancelled = eager(io::nop()); // from here on the in-flight limit is reached
        auto asked = eager(io::nop() && io::nop());
        auto late = eager(io::write(pipe.out, "never"));
        {
            const auto dropped = eager(io::read(pipe.in, {buf + 2, 1}));
        }
        auto runs = eager(io::nop());
        cancelled.cancel();
        EXPECT_TRUE(cancelled.is_complete()); // it was never submitted
        EXPECT_EQ(co_await cancelled, -ECANCELED);
        EXPECT_EQ(co_await io::cancel(asked), 0); // a request to cancel is not held back itself
        EXPECT_EQ(co_await asked, -ECANCELED);
        EXPECT_FALSE(runs.is_complete());
        late.cancel();
        pipe.put("12");
        EXPECT_EQ(co_await runs, 0);
        EXPECT_EQ(co_await a + co_await b, 2);
        EXPECT_EQ(co_await late, -ECANCELED);
    };
    run_on(ctx, main(p));
    EXPECT_GE(ctx.metrics().back_pressure_waits, 5U);
}

} // namespace
