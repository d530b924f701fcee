// for_each_concurrent: a bounded number of concurrent calls, over ranges and generators; and limits
// that are inherited.

#include "compose/combinations.hpp"

#include <coil/compose/for_each_concurrent.hpp>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <vector>

using namespace coil;
using namespace compose_test;
using std::chrono::steady_clock;

namespace {

class ForEachConcurrent : public ::testing::Test {
protected:
    listening_context ctx_;
};

struct tally {
    int running = 0;
    int most = 0;
    int ended = 0;
    int cancelled = 0;
    std::vector<int> begun;
};

task<> counts(tally& t, int i) {
    t.begun.push_back(i);
    t.most = std::max(t.most, ++t.running);
    if (co_await sleep_for(1ms) < 0) {
        ++t.cancelled;
    }
    --t.running;
    ++t.ended;
}

TEST_F(ForEachConcurrent, LimitsTheNumberOfConcurrentCallsAndKeepsTheirOrder) {
    auto main = []() -> task<> {
        std::vector<int> numbers(20);
        std::iota(numbers.begin(), numbers.end(), 0);
        for (const std::size_t limit : {0U, 1U, 3U, 50U}) {
            tally t;
            co_await for_each_concurrent(numbers, limit, [&t](int i) { return counts(t, i); });
            EXPECT_EQ(t.most, limit == 0 ? 1 : limit == 50 ? 20 : static_cast<int>(limit));
            EXPECT_EQ(t.begun, numbers);
            EXPECT_EQ(t.ended, 20);
        }
    };
    ctx_.run(main());
}

TEST_F(ForEachConcurrent, ElementsByReferenceViewsOperationsAndNone) {
    auto main = []() -> task<> {
        std::vector<int> numbers{1, 2, 3};
        auto doubles = [](int& n) -> task<> {
            co_await yield();
            n *= 2;
        };
        co_await for_each_concurrent(numbers, 2, doubles);
        EXPECT_EQ(numbers, (std::vector<int>{2, 4, 6}));
        int sum = 0;
        auto adds = [&sum](int n) -> task<int> {
            sum += n;
            co_return sum; // the result is dropped
        };
        co_await for_each_concurrent(std::views::iota(0, 5), 2, adds);
        EXPECT_EQ(sum, 10);
        co_await for_each_concurrent(numbers, 2, [](int) { return io::nop(); });
        co_await for_each_concurrent(std::vector<int>{}, 2, adds);
        EXPECT_EQ(sum, 10);
    };
    ctx_.run(main());
}

async_generator<int> forever(bool& ended) {
    struct witness {
        bool& flag;
        ~witness() { flag = true; }
    } const here(ended);
    for (int i = 0; i < 3; ++i) {
        co_yield i;
    }
    co_await sleep_for(1h);
}

TEST_F(ForEachConcurrent, G12_AFailureStopsTheCallsAndTheGenerator) {
    auto main = []() -> task<> {
        tally t;
        bool ended = false;
        auto call = [](tally& all, int i) -> task<> {
            if (i == 2) {
                co_await sleep_for(100us);
                throw std::runtime_error("two");
            }
            all.begun.push_back(i);
            all.cancelled += co_await sleep_for(1h) < 0 ? 1 : 0;
        };
        std::string text;
        auto elements = forever(ended);
        try {
            co_await for_each_concurrent(elements, 8, [&](int i) { return call(t, i); });
        } catch (const std::runtime_error& e) {
            text = e.what();
        }
        EXPECT_EQ(text, "two");
        EXPECT_TRUE(ended); // the body was asked to stop
        EXPECT_EQ(t.begun, (std::vector<int>{0, 1}));
        EXPECT_EQ(t.cancelled, 2);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(ForEachConcurrent, G12_AFailureOfTheRangeStopsTheCalls) {
    auto broken = []() -> async_generator<int> {
        co_yield 1;
        co_await sleep_for(100us);
        throw std::runtime_error("source");
    };
    auto main = [](auto source) -> task<> {
        tally t;
        std::string text;
        try {
            co_await for_each_concurrent(source(), 8, [&t](int) -> task<> {
                t.cancelled += co_await sleep_for(1h) < 0 ? 1 : 0;
            });
        } catch (const std::runtime_error& e) {
            text = e.what();
        }
        EXPECT_EQ(text, "source");
        EXPECT_EQ(t.cancelled, 1);
    };
    ctx_.run(main(broken));
}

TEST_F(ForEachConcurrent, G3_AStopEndsItWithoutStartingTheRest) {
    auto main = []() -> task<> {
        tally t;
        auto all = [](tally& counted) -> task<> {
            co_await for_each_concurrent(std::views::iota(0, 1000), 2,
                                         [&counted](int i) { return counts(counted, i); });
        };
        auto handle = spawn(all(t));
        co_await sleep_for(5ms);
        handle.cancel();
        EXPECT_EQ(co_await complaint_of([](auto& h) -> task<> { co_await h; }(handle)),
                  "Operation canceled");
        EXPECT_EQ(t.running, 0);
        EXPECT_LT(t.begun.size(), 500U);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(ForEachConcurrent, G5_DestroyedInTheMiddle) {
    tally t;
    auto main = [](tally& all) -> task<> {
        co_await for_each_concurrent(std::views::iota(0, 1000), 3, [&all](int i) -> task<> {
            all.begun.push_back(i);
            if (i == 10) {
                this_context().stop();
            }
            co_await sleep_for(i < 9 ? 100us : std::chrono::microseconds(1h));
        });
    };
    io_context ctx;
    ctx.co_spawn(main(t));
    ctx.run();
    EXPECT_LE(t.begun.size(), 12U);
}

TEST_F(ForEachConcurrent, ALimitIsInheritedAndVisible) {
    auto main = []() -> task<> {
        EXPECT_FALSE(co_await this_task::deadline());
        const auto near = steady_clock::now() + 1h;
        const auto far = near + 1h;
        auto sees = [](steady_clock::time_point expected) -> task<> {
            EXPECT_EQ(co_await this_task::deadline(), expected);
        };
        co_await with_deadline(near, sees(near));
        auto nested = [](auto f, auto first, auto second) -> task<> {
            co_await with_deadline(second, f(std::min(first, second)));
            co_await when_all(f(first), shield(f(first)));
            co_await timeout(f(first), 100h);
            scope s;
            s.spawn(f(first));
            co_await s.join();
            supervisor v;
            v.spawn(f(first));
            co_await v.join();
            co_await for_each_concurrent(std::views::iota(0, 2), 2, [&](int) { return f(first); });
        };
        co_await with_deadline(near, nested(sees, near, far));
        co_await with_deadline(far, nested(sees, far, near));
        EXPECT_FALSE(co_await this_task::deadline());
        EXPECT_EQ(co_await with_deadline(steady_clock::now() + 1ms, sleep_for(1h)), -ETIMEDOUT);
    };
    ctx_.run(main());
}

} // namespace
