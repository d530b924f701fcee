// timeout(task, d), and timeout of other awaitables that are not ring operations.

#include "compose/combinations.hpp"
#include "support/fault_environment.hpp"

#include <array>
#include <memory>
#include <type_traits>

using namespace coil;
using namespace compose_test;
using coil_test::pipe_pair;
using std::chrono::steady_clock;
using std::chrono::system_clock;

namespace {

class TimeLimit : public ::testing::Test {
protected:
    listening_context ctx_;
};

TEST_F(TimeLimit, WorkThatEndsInTimeReturnsItsResult) {
    int number = 1;
    auto refers = [](int& n) -> task<int&> { co_return n; };
    auto nothing = []() -> task<> { co_await yield(); };
    auto owns = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
    auto main = [](auto r, auto f, auto o, int& n) -> task<> {
        EXPECT_EQ(co_await timeout(gives(3), 1h), 3);
        EXPECT_EQ(co_await timeout(gives_later(3), 1h), 3);
        EXPECT_EQ(&(co_await timeout(r(n), 1h)), &n);
        co_await timeout(f(), 1h);
        std::unique_ptr<int> four = co_await timeout(o(), 1h);
        EXPECT_EQ(*four, 4);
        EXPECT_EQ(co_await timeout(spawn(gives(5)), 1h), 5);
        EXPECT_EQ(co_await timeout(sleep_for(1us), 1h), 0);
        auto [a, b] = co_await timeout(when_all(gives(1), io::nop()), 1h);
        EXPECT_EQ(a + b, 1);
        const auto first = co_await timeout(when_any(sleep_for(1h), gives(1)), 1h);
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(co_await timeout(gives(3), std::chrono::nanoseconds::max()), 3);
    };
    ctx_.run(main(refers, nothing, owns, number));
}

TEST_F(TimeLimit, WorkThatEndsLateTimesOut) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        const auto begin = steady_clock::now();
        EXPECT_EQ(
            co_await complaint_of([](int& n) -> task<> { co_await timeout(waits(n), 2ms); }(count)),
            timed_out_text);
        EXPECT_EQ(co_await complaint_of([](int& n) -> task<> {
                      co_await timeout(obeys(n), 2ms); // which returns normally, but late
                  }(count)),
                  timed_out_text);
        EXPECT_EQ(co_await complaint_of(
                      [](int& n) -> task<> { co_await timeout(spawn(obeys(n)), 2ms); }(count)),
                  timed_out_text);
        EXPECT_EQ(co_await complaint_of([](int& n) -> task<> {
                      co_await timeout(when_all(obeys(n), waits(n), sleep_for(1h)), 2ms);
                  }(count)),
                  timed_out_text);
        EXPECT_EQ(
            co_await complaint_of([](int& n) -> task<> { co_await timeout(obeys(n), -1s); }(count)),
            timed_out_text);
        EXPECT_GE(steady_clock::now() - begin, 8ms);
        EXPECT_LT(steady_clock::now() - begin, 2s);
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 6);
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(TimeLimit, TimePointsOfEitherClock) {
    int cancelled = 0;
    auto main = [](int& count) -> task<> {
        const auto begin = steady_clock::now();
        EXPECT_EQ(co_await complaint_of([](int& n, auto tp) -> task<> {
                      co_await timeout_at(waits(n), tp);
                  }(count, begin + 4ms)),
                  timed_out_text);
        EXPECT_GE(steady_clock::now(), begin + 4ms);
        const auto then = system_clock::now() + 4ms;
        EXPECT_EQ(co_await complaint_of([](int& n, auto tp) -> task<> {
                      co_await timeout_at(waits(n), tp);
                  }(count, then)),
                  timed_out_text);
        EXPECT_GE(system_clock::now() + 1ms, then);
        EXPECT_EQ(co_await timeout_at(gives(1), begin + 1h), 1);
        EXPECT_EQ(co_await timeout_at(gives(1), system_clock::now() + 1h), 1);
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 2);
}

TEST_F(TimeLimit, G12_AnExceptionPropagatesInTimeAndIsReportedLater) {
    auto main = []() -> task<> {
        EXPECT_EQ(
            co_await complaint_of([]() -> task<> { co_await timeout(fails("in time"), 1h); }()),
            "in time");
        EXPECT_EQ(co_await complaint_of(
                      []() -> task<> { co_await timeout(fails_when_cancelled("late"), 1ms); }()),
                  timed_out_text);
    };
    ctx_.run(main());
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"late"});
}

TEST_F(TimeLimit, Nested_TheShorterOneExpires) {
    int cancelled = 0;
    auto inner = [](int& n) -> task<std::string> {
        co_return co_await complaint_of(
            [](int& m) -> task<> { co_await timeout(waits(m), 1ms); }(n));
    };
    auto main = [](auto f, int& n) -> task<> {
        EXPECT_EQ(co_await timeout(f(n), 1h), timed_out_text);
        EXPECT_EQ(co_await complaint_of(
                      [](int& m) -> task<> { co_await timeout(timeout(waits(m), 1h), 1ms); }(n)),
                  timed_out_text);
    };
    ctx_.run(main(inner, cancelled));
    EXPECT_EQ(cancelled, 2);
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(TimeLimit, G3_CancelledFromOutside) {
    int cancelled = 0;
    auto work = [](int& n) -> task<std::string> {
        co_return co_await complaint_of(
            [](int& m) -> task<> { co_await timeout(waits(m), 1h); }(n));
    };
    auto main = [](auto f, int& n) -> task<> {
        auto handle = spawn(f(n));
        co_await sleep_for(1ms);
        handle.cancel();
        EXPECT_EQ(co_await handle, cancelled_text); // not timed out
    };
    ctx_.run(main(work, cancelled));
    EXPECT_EQ(cancelled, 1);
}

TEST_F(TimeLimit, G3_OfTheLimitAndTheEndExactlyOneWins) {
    int late = 0;
    int in_time = 0;
    auto main = [](int& lost, int& won) -> task<> {
        for (int i = 0; i < coil_test::rounds(300, 5000); ++i) {
            try {
                EXPECT_EQ(co_await timeout(gives_later(1, 100us), 50us + i % 100 * 1us), 1);
                ++won;
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::timed_out);
                ++lost;
            }
        }
    };
    ctx_.run(main(late, in_time));
    EXPECT_GT(late, 0);
    EXPECT_EQ(late + in_time, coil_test::rounds(300, 5000));
}

TEST_F(TimeLimit, G4_TheValueOfALateTaskIsDestroyed) {
    auto opens_at_the_end = []() -> task<coil_test::descriptor> {
        co_await sleep_for(1h);
        co_return coil_test::descriptor{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    };
    auto main = [](auto f) -> task<> {
        try {
            co_await timeout(f(), 1ms);
            ADD_FAILURE() << "the task ended in time";
        } catch (const std::system_error&) {
        }
        co_await when_any(yield(), timeout(when_all(io::socket(AF_UNIX, SOCK_STREAM)), 1h));
    };
    const auto before = coil_test::open_descriptors();
    ctx_.run(main(opens_at_the_end));
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(TimeLimit, G5_DestroyedBeforeAndAfterItExpires) {
    const pipe_pair p;
    auto limited = [](int fd, std::chrono::milliseconds limit,
                      int& destroyed) -> coil_test::manual {
        auto work = [](int in, int& count) -> task<> {
            const coil_test::on_destruction guard(count);
            std::array<char, 1> c{};
            while (true) {
                co_await io::read(in, c); // ignores the stop
                co_await yield();
            }
        };
        co_await timeout(work(fd, destroyed), limit);
    };
    auto main = [](auto f, int fd) -> task<> {
        for (const auto limit : {0ms, 1ms, 100ms}) {
            int destroyed = 0;
            {
                const auto victim = f(fd, limit, destroyed);
                victim.start();
                co_await sleep_for(3ms);
            }
            EXPECT_EQ(destroyed, 1);
        }
        this_context().stop();
        co_await sleep_for(1h);
    };
    ctx_.context.co_spawn(main(limited, p.in));
    ctx_.context.run();
}

TEST_F(TimeLimit, MayBeAChildOfACombination) {
    int cancelled = 0;
    auto main = [](int& n) -> task<> {
        EXPECT_EQ(co_await complaint_of([](int& m) -> task<> {
                      co_await when_all(timeout(waits(m), 1ms), obeys(m), timeout(obeys(m), 1h));
                  }(n)),
                  timed_out_text);
    };
    ctx_.run(main(cancelled));
    EXPECT_EQ(cancelled, 3);
}

task<> sleeps_through() { co_await sleep_for(1h); }

TEST_F(TimeLimit, G12_AnExpiredInnerLimitIsNotReportedInAddition) {
    auto inner = []() -> task<> { co_await timeout(sleeps_through(), 1ms); };
    auto main = [](auto in) -> task<> {
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(
                co_await complaint_of([](auto f) -> task<> { co_await timeout(f(), 1ms); }(in)),
                timed_out_text);
            EXPECT_EQ(co_await complaint_of(
                          [](auto f) -> task<> { co_await timeout(timeout(f(), 1ms), 1ms); }(in)),
                      timed_out_text);
        }
        // Exceptions of other types that mean the same are reported.
        auto another = []() -> task<> {
            co_await sleep_for(1h);
            throw std::system_error(std::make_error_code(std::errc::timed_out), "another");
        };
        EXPECT_EQ(
            co_await complaint_of([](auto f) -> task<> { co_await timeout(f(), 1us); }(another)),
            timed_out_text);
    };
    ctx_.run(main(inner));
    ASSERT_EQ(ctx_.heard.size(), 1U);
    EXPECT_EQ(ctx_.heard[0].substr(0, 7), "another");
}

} // namespace
