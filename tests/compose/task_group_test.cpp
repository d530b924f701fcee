// task_group: results in the order in which the tasks end.

#include "compose/combinations.hpp"

#include <coil/compose/task_group.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace coil;
using namespace compose_test;

namespace {

class TaskGroup : public ::testing::Test {
protected:
    listening_context ctx_;
};

struct counted {
    int& n;
    explicit counted(int& count) : n(++count) {}
    counted(const counted&) = delete;
    ~counted() { --n; }
};

task<> sleeps_counted(int& n) {
    const counted here(n);
    co_await sleep_for(1h);
}

TEST_F(TaskGroup, ReturnsResultsInOrderOfCompletion) {
    auto main = []() -> task<> {
        task_group<int> g;
        g.spawn(gives_later(3, 9ms));
        g.spawn(gives_later(1, 1ms));
        g.spawn(gives_later(2, 5ms));
        EXPECT_EQ(g.size(), 3U);
        std::vector<int> order;
        while (auto r = co_await g.next()) {
            order.push_back(*r);
        }
        EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
        EXPECT_EQ(co_await g.next(), std::nullopt);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(TaskGroup, ResultsWaitInTheGroupUntilTheyAreTaken) {
    auto main = []() -> task<> {
        task_group<int> g;
        for (int i = 0; i < 5; ++i) {
            g.spawn(gives(i));
        }
        EXPECT_EQ(g.ready(), 0U);
        co_await sleep_for(1ms);
        EXPECT_EQ(g.ready(), 5U);
        EXPECT_EQ(g.size(), 0U);
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(co_await g.next(), i);
        }
        EXPECT_FALSE(co_await g.next());
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, VoidReferencesAndMoveOnlyResults) {
    static int shared = 7;
    auto refers = []() -> task<int&> { co_return shared; };
    auto owns = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
    auto main = [](auto reference, auto pointer) -> task<> {
        int cancelled = 0;
        task_group none;
        none.spawn(obeys(cancelled));
        none.cancel();
        EXPECT_TRUE(co_await none.next());
        EXPECT_FALSE(co_await none.next());
        task_group<int&> references;
        references.spawn(reference());
        const auto r = co_await references.next();
        EXPECT_EQ(&r->get(), &shared);
        task_group<std::unique_ptr<int>> pointers;
        pointers.spawn(pointer());
        const auto p = co_await pointers.next();
        EXPECT_EQ(**p, 5);
    };
    ctx_.run(main(refers, owns));
}

TEST_F(TaskGroup, AFailureComesOutOfNextAndTheOthersContinue) {
    auto main = []() -> task<> {
        task_group<int> g;
        g.spawn(gives_later(1, 1ms));
        g.spawn(fails_later("two", 4ms));
        g.spawn(gives_later(3, 8ms));
        EXPECT_EQ(co_await g.next(), 1);
        auto takes = [](task_group<int>& from) -> task<> { co_await from.next(); };
        EXPECT_EQ(co_await complaint_of(takes(g)), "two");
        EXPECT_EQ(co_await g.next(), 3);
        EXPECT_FALSE(co_await g.next());
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(TaskGroup, ChildrenMayBeAddedWhileNextWaitsOrHasBeenWoken) {
    auto main = []() -> task<> {
        task_group<int> g;
        g.spawn(gives(1));
        // Runs after the child has ended and before the awaiting coroutine resumes.
        auto adds = [](task_group<int>& to) -> task<> {
            to.spawn(gives_later(2, 20ms));
            co_return;
        };
        co_spawn(adds(g));
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(co_await g.next(), 1);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 15ms);
        EXPECT_EQ(co_await g.next(), 2);
        // A group that has become empty can be used again.
        g.spawn(gives(3));
        EXPECT_EQ(co_await g.next(), 3);
        EXPECT_FALSE(co_await g.next());
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, ASpawnWaitsWhileTheGroupIsFull) {
    auto main = []() -> task<> {
        int live = 0;
        int most = 0;
        auto works = [](int& n, int& top) -> task<int> {
            const counted here(n);
            top = std::max(top, n);
            co_await sleep_for(1ms);
            co_return n;
        };
        task_group<int> g{{.max_children = 3}};
        for (int i = 0; i < 20; ++i) {
            co_await g.spawn(works(live, most));
        }
        EXPECT_GT(g.held_back(), 0U);
        int results = 0;
        while (co_await g.next()) {
            ++results;
        }
        EXPECT_EQ(results, 20);
        EXPECT_EQ(most, 3);
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, G3_AStoppedSpawnTakesItsChildBack) {
    auto main = []() -> task<> {
        int cancelled = 0;
        task_group<> g{{.max_children = 1}};
        g.spawn(obeys(cancelled));
        int live = 0;
        auto spawns = [](task_group<>& into, int& n) -> task<> {
            co_await into.spawn(sleeps_counted(n));
        };
        auto limited = [](task<> work) -> task<> { co_await timeout(std::move(work), 1ms); };
        EXPECT_EQ(co_await complaint_of(limited(spawns(g, live))), timed_out_text);
        EXPECT_EQ(g.size(), 1U);
        g.cancel();
        EXPECT_TRUE(co_await g.next());
        EXPECT_FALSE(co_await g.next());
        EXPECT_EQ(live, 0);
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, G3_AStopOfTheAwaitingTaskReachesTheChildrenAndLosesNoResult) {
    auto main = []() -> task<> {
        int cancelled = 0;
        int taken = 0;
        auto drains = [](int& n, int& results) -> task<> {
            task_group<> g;
            for (int i = 0; i < 10; ++i) {
                g.spawn(obeys(n));
            }
            while (co_await g.next()) {
                ++results;
            }
        };
        auto handle = spawn(drains(cancelled, taken));
        co_await sleep_for(1ms);
        handle.cancel();
        co_await handle;
        EXPECT_EQ(cancelled, 10);
        EXPECT_EQ(taken, 10);

        inplace_stop_source source;
        task_group<> g({}, source.get_token());
        g.spawn(obeys(cancelled));
        co_await sleep_for(1ms);
        std::thread([&source] { source.request_stop(); }).join();
        EXPECT_TRUE(co_await g.next());
        EXPECT_EQ(cancelled, 11);
    };
    ctx_.run(main());
    EXPECT_TRUE(ctx_.heard.empty());
}

TEST_F(TaskGroup, ANextThatLosesLeavesTheResultInTheGroup) {
    auto main = []() -> task<> {
        task_group<int> g;
        g.spawn(gives_later(4, 5ms));
        // The timer wins; the stop reaches the child, whose sleep ends early, and it still ends.
        const auto first = co_await when_any(g.next(), sleep_for(1ms));
        EXPECT_EQ(first.index, 1U);
        EXPECT_EQ(g.ready(), 1U);
        EXPECT_EQ(co_await g.next(), 4);
        EXPECT_FALSE(co_await timeout(g.next(), 1s));
        task_group<int> both;
        both.spawn(gives(1));
        both.spawn(gives(2));
        const auto [one, nothing] = co_await when_all(both.next(), sleep_for(1ms));
        EXPECT_EQ(one, 1);
        EXPECT_EQ(co_await both.next(), 2);
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, DestroyingAGroupDestroysChildrenAndResults) {
    auto fails_now = []() -> task<std::shared_ptr<int>> {
        throw oops("not taken");
        co_return nullptr;
    };
    auto gives_shared = [](std::shared_ptr<int> p) -> task<std::shared_ptr<int>> { co_return p; };
    auto sleeps = [](int& n) -> task<std::shared_ptr<int>> {
        const counted here(n);
        co_await sleep_for(1h);
        co_return nullptr;
    };
    auto main = [](auto bad, auto good, auto late) -> task<> {
        int live = 0;
        const auto value = std::make_shared<int>(1);
        {
            task_group<std::shared_ptr<int>> g;
            g.spawn(bad());
            g.spawn(good(value));
            g.spawn(late(live));
            g.spawn(late(live));
            co_await sleep_for(1ms);
            EXPECT_EQ(live, 2);
            EXPECT_EQ(value.use_count(), 2);
        }
        EXPECT_EQ(live, 0);
        EXPECT_EQ(value.use_count(), 1);
    };
    ctx_.run(main(fails_now, gives_shared, sleeps));
    EXPECT_EQ(ctx_.heard, std::vector<std::string>{"not taken"});
}

TEST_F(TaskGroup, ADestructorOfAResultMaySpawn) {
    int ran = 0;
    struct spawns {
        task_group<std::shared_ptr<void>>* into;
        int* n;
        ~spawns() {
            auto child = [](int& count) -> task<std::shared_ptr<void>> {
                const counted here(count);
                co_await sleep_for(1h);
                co_return nullptr;
            };
            into->spawn(child(*n));
        }
    };
    auto main = [](int& n) -> task<> {
        task_group<std::shared_ptr<void>> g;
        auto gives_one = [](auto& group, int& count) -> task<std::shared_ptr<void>> {
            co_return std::shared_ptr<void>(new spawns{&group, &count},
                                            [](void* p) { delete static_cast<spawns*>(p); });
        };
        g.spawn(gives_one(g, n));
        co_await sleep_for(1ms);
    };
    ctx_.run(main(ran));
    EXPECT_EQ(ran, 0);
}

TEST_F(TaskGroup, ANextWhoseGroupIsDestroyedThrows) {
    auto main = []() -> task<> {
        int cancelled = 0;
        auto g = std::make_unique<task_group<>>();
        auto takes = [](task_group<>& from) -> task<> { co_await from.next(); };
        auto handle = spawn(complaint_of(takes(*g)));
        auto woken = [](task_group<>& from) -> task<> { (void)co_await from.next(); };
        g->spawn(obeys(cancelled));
        co_await sleep_for(1ms);
        g.reset();
        EXPECT_EQ(co_await handle, cancelled_text);
        // Destroyed after a result has woken the awaiting coroutine, and before that resumes.
        auto h = std::make_unique<task_group<>>();
        auto resets = [](std::unique_ptr<task_group<>>& group) -> task<> {
            group.reset();
            co_return;
        };
        h->spawn([]() -> task<> { co_return; }());
        auto other = spawn(complaint_of(woken(*h)));
        co_await yield();
        auto third = spawn(resets(h));
        co_await third;
        const std::string end = co_await other;
        EXPECT_TRUE(end.empty() || end == cancelled_text) << end;
    };
    ctx_.run(main());
}

TEST_F(TaskGroup, G5_AShutdownDestroysIt) {
    int live = 0;
    auto main = [](int& n) -> task<> {
        task_group<> g{{.max_children = 2}};
        for (int i = 0; i < 5; ++i) {
            g.spawn(sleeps_counted(n));
        }
        co_await sleep_for(1ms);
        EXPECT_EQ(n, 2);
        this_context().stop();
        while (co_await g.next()) {
        }
        ADD_FAILURE() << "the loop ended after the context was stopped";
    };
    io_context ctx;
    ctx.co_spawn(main(live));
    ctx.run();
    EXPECT_EQ(live, 0);
}

task<int> nested(int depth, int& live) {
    const counted here(live);
    if (depth == 0) {
        co_await sleep_for(1h);
        co_return 0;
    }
    task_group<int> g;
    g.spawn(nested(depth - 1, live));
    co_return (co_await g.next()).value_or(-1) + 1;
}

TEST_F(TaskGroup, G10_NestedGroupsAreDestroyedAndStoppedWithConstantStack) {
    static constexpr int depth = 20'000;
    int live = 0;
    auto main = [](int& n) -> task<> {
        {
            auto handle = spawn(nested(depth, n));
            while (n <= depth) {
                co_await yield();
            }
            handle.cancel();
            EXPECT_EQ(co_await handle, depth); // each level adds one
        }
        EXPECT_EQ(n, 0);
        {
            scope s;
            s.spawn(nested(depth, n));
            while (n <= depth) {
                co_await yield();
            }
        } // destroys the outermost frame
        EXPECT_EQ(n, 0);
    };
    ctx_.run(main(live));
}

TEST_F(TaskGroup, RandomProgramsLoseNoResult) {
    auto child = [](int id, int what, int& live) -> task<int> {
        const counted here(live);
        for (int i = 0; i < what % 4; ++i) {
            co_await yield();
        }
        if (what % 5 == 0) {
            (void)co_await sleep_for(std::chrono::microseconds(what * 10));
        }
        if (what % 7 == 0) {
            throw oops("child");
        }
        co_return id;
    };
    auto program = [](unsigned seed, auto f, int& live) -> task<> {
        std::minstd_rand random(seed);
        const std::size_t limit = 1 + random() % 4;
        task_group<int> g{{.max_children = limit}};
        std::vector<bool> taken(40);
        int failures = 0;
        int expected_failures = 0;
        int results = 0;
        int spawned = 0;
        const auto take = [&]() -> task<bool> {
            try {
                const auto r = co_await g.next();
                if (!r) {
                    co_return false;
                }
                EXPECT_FALSE(taken.at(static_cast<std::size_t>(*r)));
                taken.at(static_cast<std::size_t>(*r)) = true;
                ++results;
            } catch (const oops&) {
                ++failures;
            }
            co_return true;
        };
        while (spawned < 40) {
            const int what = static_cast<int>(random() % 35);
            expected_failures += what % 7 == 0 ? 1 : 0;
            if (random() % 2 == 0) {
                co_await g.spawn(f(spawned, what, live));
            } else {
                g.spawn(f(spawned, what, live));
            }
            ++spawned;
            if (random() % 3 == 0) {
                co_await take();
            }
        }
        if (seed % 5 == 0) {
            co_return; // the group is destroyed with children, results and failures in it
        }
        while (co_await take()) {
        }
        EXPECT_EQ(failures, expected_failures) << seed;
        EXPECT_EQ(results + failures, 40) << seed;
    };
    for (unsigned seed = 1; seed <= 300; ++seed) {
        int live = 0;
        listening_context ctx;
        ctx.run(program(seed, child, live));
        EXPECT_EQ(live, 0) << seed;
    }
}

} // namespace
