// Three kinds of task: each resumes on its own executor, in program order.

#include "exec/support.hpp"

#include <mutex>
#include <string>
#include <vector>

using namespace exec_test;

namespace {

struct demonstration_log {
    struct line {
        std::thread::id thread;
        std::string text;
    };
    void say(std::string text) {
        const std::lock_guard lock(m);
        lines.push_back({std::this_thread::get_id(), std::move(text)});
    }
    std::mutex m;
    std::vector<line> lines;
    std::binary_semaphore callbacks_added{0};
};

async_task<int, async_executor> demonstration_two(demonstration_log& log) {
    log.say("task 2 starts");
    log.callbacks_added.acquire();
    log.say("task 2 returns");
    co_return 2;
}

async_task<int, new_thread_executor> demonstration_three(demonstration_log& log) {
    log.say("task 3 starts");
    log.say("task 3 returns");
    co_return 3;
}

async_task<int, looper_executor> demonstration_sum(demonstration_log& log) {
    log.say("task starts");
    const int two = co_await demonstration_two(log);
    log.say("has 2: " + std::to_string(two));
    const int three = co_await demonstration_three(log);
    log.say("has 3: " + std::to_string(three));
    co_return 1 + two + three;
}

TEST(ExecutorsDemonstration, G1_ThreadsAndOrder) {
    demonstration_log log;
    auto sum = demonstration_sum(log);
    sum.then([&](int n) { log.say("ends: " + std::to_string(n)); })
        .catching([](std::exception&) { ADD_FAILURE(); })
        .finally([&] { log.say("finally"); });
    log.callbacks_added.release();
    const int result = sum.get();
    log.say("get: " + std::to_string(result));

    EXPECT_EQ(result, 6);
    const std::vector<std::string> expected{
        "task starts",    "task 2 starts", "task 2 returns", "has 2: 2", "task 3 starts",
        "task 3 returns", "has 3: 3",      "ends: 6",        "finally",  "get: 6"};
    ASSERT_EQ(log.lines.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(log.lines[i].text, expected[i]);
    }
    const auto looper = default_executor<looper_executor>().get_id();
    for (const std::size_t i : {0U, 3U, 6U, 7U, 8U}) {
        EXPECT_EQ(log.lines[i].thread, looper) << expected[i];
    }
    EXPECT_EQ(log.lines[1].thread, log.lines[2].thread);
    EXPECT_EQ(log.lines[4].thread, log.lines[5].thread);
    EXPECT_NE(log.lines[1].thread, looper);
    EXPECT_NE(log.lines[4].thread, looper);
    EXPECT_EQ(log.lines[9].thread, std::this_thread::get_id());
}

} // namespace
