// inplace_stop_token across threads: the standard's guarantees about callbacks that run elsewhere.

#include "support/run.hpp"

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace coil;

namespace {

TEST(StopCallbackThreads, DestructorWaitsForTheCallbackOnAnotherThread) {
    inplace_stop_source source;
    std::latch inside(1);
    std::atomic<bool> go{false};
    std::atomic<bool> left{false};
    auto work = [&] {
        inside.count_down();
        while (!go) {
            std::this_thread::yield();
        }
        left = true;
    };
    std::optional<inplace_stop_callback<decltype(work)>> callback;
    callback.emplace(source.get_token(), work);
    std::thread stopper([&] { source.request_stop(); });
    inside.wait();
    std::thread releaser([&] {
        EXPECT_FALSE(left);
        go = true;
    });
    callback.reset();
    EXPECT_TRUE(left);
    stopper.join();
    releaser.join();
}

TEST(StopCallbackThreads, DestructorOfOneDoesNotWaitForAnother) {
    inplace_stop_source source;
    std::latch inside(1);
    std::latch go(1);
    auto nothing = [] {};
    std::optional<inplace_stop_callback<decltype(nothing)>> idle;
    idle.emplace(source.get_token(), nothing);
    const inplace_stop_callback busy(source.get_token(), [&] {
        inside.count_down();
        go.wait();
    });
    std::thread stopper([&] { source.request_stop(); });
    inside.wait();
    idle.reset(); // would hang here
    go.count_down();
    stopper.join();
}

TEST(StopCallbackThreads, ExactlyOneOfManyRequestsSucceeds) {
    for (int round = 0; round < coil_test::rounds(200, 5000); ++round) {
        inplace_stop_source source;
        std::atomic<int> successes{0};
        std::atomic<int> calls{0};
        const inplace_stop_callback callback(source.get_token(), [&] { ++calls; });
        std::vector<std::thread> threads;
        std::latch start(3);
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&] {
                start.arrive_and_wait();
                successes += source.request_stop() ? 1 : 0;
            });
        }
        for (auto& t : threads) {
            t.join();
        }
        ASSERT_EQ(successes, 1);
        ASSERT_EQ(calls, 1);
    }
}

TEST(StopCallbackThreads, RegisteringRacesWithTheRequest_RunsExactlyOnceOrNotAtAll) {
    for (int round = 0; round < coil_test::rounds(300, 5000); ++round) {
        inplace_stop_source source;
        std::latch start(2);
        std::thread stopper([&] {
            start.arrive_and_wait();
            source.request_stop();
        });
        start.arrive_and_wait();
        for (int i = 0; i < 50; ++i) {
            int calls = 0; // not atomic: ThreadSanitizer checks that the destructor is a fence
            {
                const inplace_stop_callback callback(source.get_token(), [&] { ++calls; });
            }
            ASSERT_LE(calls, 1);
        }
        stopper.join();
        int calls = 0;
        const inplace_stop_callback last(source.get_token(), [&] { ++calls; });
        ASSERT_EQ(calls, 1);
    }
}

TEST(StopCallbackThreads, ManyThreadsRegisterAndUnregisterWhileOneStops) {
    for (int round = 0; round < coil_test::rounds(30, 500); ++round) {
        inplace_stop_source source;
        std::atomic<int> calls{0};
        std::latch start(4);
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&] {
                start.arrive_and_wait();
                while (!source.stop_requested()) {
                    std::vector<std::unique_ptr<inplace_stop_callback<std::function<void()>>>> some;
                    for (int i = 0; i < 8; ++i) {
                        some.push_back(
                            std::make_unique<inplace_stop_callback<std::function<void()>>>(
                                source.get_token(), [&] { ++calls; }));
                    }
                }
            });
        }
        start.arrive_and_wait();
        std::this_thread::yield();
        source.request_stop();
        for (auto& t : threads) {
            t.join();
        }
    }
}

} // namespace
