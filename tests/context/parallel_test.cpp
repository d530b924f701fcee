// parallel(): values in order, the first failure, a stop.

#include "support/run.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Parallel : public ::testing::Test {};

task<int> square(int n) {
    co_await yield();
    co_return n* n;
}

TEST_F(Parallel, ReturnsTheValuesInTheOrderOfTheTasks) {
    runtime rt(3);
    std::vector<task<int>> tasks;
    for (int i = 0; i < 100; ++i) {
        tasks.push_back(square(i));
    }
    const std::vector<int> values = rt.block_on(parallel(rt, std::move(tasks)));
    ASSERT_EQ(values.size(), 100U);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(values[static_cast<std::size_t>(i)], i * i);
    }
}

TEST_F(Parallel, SpreadsOverTheContextsOfTheCallersRuntime) {
    runtime rt(3);
    auto where = []() -> task<const io_context*> { co_return &this_context(); };
    auto main = [&](runtime& all) -> task<> {
        std::vector<task<const io_context*>> tasks;
        for (int i = 0; i < 9; ++i) {
            tasks.push_back(where());
        }
        const auto contexts = co_await parallel(std::move(tasks));
        for (std::size_t i = 0; i < all.size(); ++i) {
            EXPECT_EQ(std::ranges::count(contexts, &all.context(i)), 3);
        }
    };
    rt.co_spawn(main(rt));
    rt.run();
}

TEST_F(Parallel, OnAPlainContextTasksRunConcurrently) {
    auto main = []() -> task<> {
        std::vector<task<int>> tasks;
        tasks.push_back(square(3));
        tasks.push_back(square(4));
        EXPECT_EQ(co_await parallel(std::move(tasks)), (std::vector{9, 16}));
        std::vector<task<>> nothing;
        co_await parallel(std::move(nothing));
        EXPECT_TRUE((co_await parallel(std::vector<task<int>>())).empty());
    };
    coil::run(main());
}

TEST_F(Parallel, Reduces) {
    runtime rt(2);
    std::vector<task<std::string>> tasks;
    auto word = [](const char* w) -> task<std::string> {
        co_await yield();
        co_return w;
    };
    for (const char* w : {"in", " the", " order", " of", " tasks"}) {
        tasks.push_back(word(w));
    }
    EXPECT_EQ(rt.block_on(parallel(rt, std::move(tasks), std::plus<>())), "in the order of tasks");
    EXPECT_THROW(rt.block_on(parallel(rt, std::vector<task<int>>(), std::plus<>())),
                 std::invalid_argument);
}

TEST_F(Parallel, MoveOnlyValues) {
    runtime rt(2);
    auto make = [](int n) -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(n); };
    std::vector<task<std::unique_ptr<int>>> tasks;
    tasks.push_back(make(1));
    tasks.push_back(make(2));
    const auto values = rt.block_on(parallel(rt, std::move(tasks)));
    EXPECT_EQ(*values.at(0) + *values.at(1), 3);
}

TEST_F(Parallel, G12_TheFirstExceptionStopsTheOthersAndIsRethrownAfterThem) {
    runtime rt(3);
    std::atomic<int> ended{0};
    auto waits = [&]() -> task<> {
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
        ++ended;
    };
    auto fails = []() -> task<> {
        co_await sleep_for(1ms);
        throw std::runtime_error("first");
    };
    std::vector<task<>> tasks;
    for (int i = 0; i < 5; ++i) {
        tasks.push_back(waits());
    }
    tasks.push_back(fails());
    tasks.push_back(waits());
    try {
        rt.block_on(parallel(rt, std::move(tasks)));
        ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "first");
    }
    EXPECT_EQ(ended, 6);
}

TEST_F(Parallel, G3_AStopOfTheCallerStopsAll) {
    runtime rt(2);
    std::atomic<int> stopped{0};
    auto waits = [&]() -> task<> { stopped += co_await sleep_for(1h) == -ECANCELED ? 1 : 0; };
    auto all = [&]() -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 4; ++i) {
            tasks.push_back(waits());
        }
        co_await parallel(std::move(tasks));
    };
    auto main = [&]() -> task<> {
        auto handle = coil::spawn(all());
        co_await sleep_for(1ms);
        handle.cancel();
        co_await handle;
    };
    rt.co_spawn(main());
    rt.run();
    EXPECT_EQ(stopped, 4);
}

TEST_F(Parallel, G5_AShutdownOfTheCallerStopsTheTasks) {
    runtime rt(2);
    auto waits = []() -> task<> { co_await sleep_for(1h); };
    auto all = [&](runtime& contexts) -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 10; ++i) {
            tasks.push_back(waits());
        }
        co_await parallel(contexts, std::move(tasks));
    };
    rt.co_spawn(all(rt));
    rt.co_spawn([](runtime& contexts) -> task<> {
        co_await sleep_for(2ms);
        contexts.stop();
    }(rt));
    rt.run();
}

TEST_F(Parallel, G12_AReductionThatThrowsIsNotCalledAgain) {
    runtime rt(2);
    std::vector<task<int>> tasks;
    auto value = [](int i) -> task<int> { co_return i; };
    for (int i = 0; i < 10; ++i) {
        tasks.push_back(value(i));
    }
    int calls = 0;
    auto throws = [&calls](int, int) -> int {
        ++calls;
        throw std::runtime_error("no sum");
    };
    EXPECT_THROW(rt.block_on(parallel(rt, std::move(tasks), throws)), std::runtime_error);
    EXPECT_EQ(calls, 1);
}

TEST_F(Parallel, G12_IfNotAllCanBeStartedTheOthersAreAwaited) {
    int dispatched = 0;
    runtime_options options;
    options.contexts = 2;
    options.dispatcher = [&](const runtime&) -> std::size_t {
        return dispatched++ == 5 ? throw std::runtime_error("no more") : 1;
    };
    runtime rt(options);
    std::atomic<int> alive{0};
    auto waits = [&]() -> task<> {
        ++alive;
        co_await sleep_for(1h);
        --alive;
    };
    std::vector<task<>> tasks;
    for (int i = 0; i < 10; ++i) {
        tasks.push_back(waits());
    }
    auto starts = [&]() -> task<> {
        EXPECT_THROW(co_await parallel(rt, std::move(tasks)), std::runtime_error);
        EXPECT_EQ(alive, 0);
    };
    rt.context(0).co_spawn(starts());
    rt.run();
}

} // namespace
