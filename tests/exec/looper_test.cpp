// looper_executor: one thread, FIFO order, and a shutdown that does not hang.

#include "exec/support.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

using namespace exec_test;

namespace {

TEST(Looper, G7_FirstInFirstOutUnderEightProducers) {
    constexpr int producers = 8;
    const int each = coil_test::rounds(coil_test::sanitized ? 300 : 3000, 100'000);
    std::array<int, producers> next{};
    int disorder = 0;
    int strangers = 0;
    {
        looper_executor looper;
        const auto thread = looper.get_id();
        std::vector<std::thread> all;
        for (int p = 0; p < producers; ++p) {
            all.emplace_back([&, p] {
                for (int i = 0; i < each; ++i) {
                    looper.execute([&, p, i] {
                        disorder += next[static_cast<std::size_t>(p)]++ == i ? 0 : 1;
                        strangers += std::this_thread::get_id() == thread ? 0 : 1;
                    });
                }
            });
        }
        for (std::thread& t : all) {
            t.join();
        }
        EXPECT_EQ(looper.shutdown(), 0U);
        looper.join();
    }
    EXPECT_EQ(disorder, 0);
    EXPECT_EQ(strangers, 0);
    for (const int count : next) {
        EXPECT_EQ(count, each);
    }
}

TEST(Looper, G5_ShutdownReturnsTheNumberOfDroppedFunctions) {
    looper_executor looper;
    int called = 0;
    int destroyed = 0;
    {
        held hold(looper);
        for (int i = 0; i < 5; ++i) {
            looper.execute([&called, guard = coil_test::on_destruction(destroyed)] { ++called; });
        }
        EXPECT_EQ(looper.shutdown(false), 5U);
        EXPECT_EQ(destroyed, 5); // when shutdown() returns
        EXPECT_EQ(looper.shutdown(false), 0U);
        looper.execute([&called, guard = coil_test::on_destruction(destroyed)] { ++called; });
        EXPECT_EQ(destroyed, 6); // later work is dropped at once
    }
    looper.join();
    EXPECT_EQ(called, 0);
}

TEST(Looper, ShutdownRunsQueuedFunctions) {
    looper_executor looper;
    int called = 0;
    {
        held hold(looper);
        for (int i = 0; i < 5; ++i) {
            looper.execute([&] { ++called; });
        }
        EXPECT_EQ(looper.shutdown(), 0U);
        int destroyed = 0;
        looper.execute([&called, guard = coil_test::on_destruction(destroyed)] { ++called; });
        EXPECT_EQ(destroyed, 1);
    }
    looper.join();
    looper.join();
    EXPECT_EQ(called, 5);
}

TEST(Looper, ShutdownInTheMiddleOfABatch) {
    looper_executor looper;
    int called = 0;
    std::size_t dropped = 0;
    {
        held hold(looper);
        looper.execute([&] { ++called; });
        looper.execute([&] {
            ++called;
            dropped = looper.shutdown(false);
        });
        looper.execute([&] { ++called; });
        looper.execute([&] { ++called; });
    }
    looper.join();
    EXPECT_EQ(called, 2);
    EXPECT_EQ(dropped, 2U);
}

TEST(Looper, G5_DestroyedOnItsOwnThread) {
    std::binary_semaphore done{0};
    int destroyed = 0;
    auto* const looper = new looper_executor;
    looper->execute([&, looper] {
        EXPECT_THROW(looper->join(), std::system_error);
        looper->execute([guard = coil_test::on_destruction(destroyed)] {});
        delete looper;
        EXPECT_EQ(destroyed, 1);
        done.release();
    });
    done.acquire();
}

TEST(Looper, G8_ASleepingOneIsWoken) {
    looper_executor looper;
    std::atomic<pid_t> thread{0};
    std::binary_semaphore ran{0};
    looper.execute([&] {
        thread = static_cast<pid_t>(::syscall(SYS_gettid));
        ran.release();
    });
    ran.acquire();
    for (int i = 0; i < 20; ++i) {
        coil_test::wait_until_asleep(thread);
        looper.execute([&] { ran.release(); });
        ran.acquire();
    }
    coil_test::wait_until_asleep(thread); // then the destructor wakes it
}

/// Each looper is about to sleep when the other one's answer arrives.
TEST(Looper, G9_NoWakeUpIsLostBetweenTwo) {
    looper_executor a;
    looper_executor b;
    std::binary_semaphore done{0};
    int left = coil_test::rounds(coil_test::sanitized ? 2000 : 10'000, 200'000);
    std::function<void()> to_a;
    std::function<void()> to_b;
    to_a = [&] {
        if (--left == 0) {
            done.release();
        } else {
            b.execute([&] { to_b(); });
        }
    };
    to_b = [&] { a.execute([&] { to_a(); }); };
    a.execute([&] { to_a(); });
    done.acquire();
    a.shutdown();
    b.shutdown();
    a.join();
    b.join();
}

TEST(Looper, G5_IsDestroyedImmediatelyAfterItsConstruction) {
    for (int i = 0; i < coil_test::rounds(200, 5000); ++i) {
        int calls = 0;
        {
            looper_executor looper;
            if (i % 2 == 0) {
                looper.execute([&] { ++calls; });
            }
        }
        EXPECT_LE(calls, 1);
    }
}

} // namespace
