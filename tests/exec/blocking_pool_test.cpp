#include "support/run.hpp"

#include <coil/context/processors.hpp>
#include <coil/exec/blocking.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <latch>
#include <mutex>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

namespace {

using namespace coil;
using namespace std::chrono_literals;

blocking_pool_options pool_of(unsigned threads, std::chrono::nanoseconds idle = 10s,
                              std::size_t queue = 100) {
    blocking_pool_options options;
    options.threads = threads;
    options.idle_time = idle;
    options.queue = queue;
    return options;
}

void wait_for_pool(const std::function<bool()>& what) {
    while (!what()) {
        std::this_thread::sleep_for(50us);
    }
}

TEST(BlockingPool, GrowsToItsLimit) {
    blocking_pool pool(3);
    EXPECT_EQ(pool.metrics().threads, 0U);
    std::counting_semaphore<> entered(0);
    std::counting_semaphore<> opened(0);
    for (int i = 0; i < 5; ++i) {
        pool.execute([&] {
            entered.release();
            opened.acquire();
        });
    }
    for (int i = 0; i < 3; ++i) {
        entered.acquire();
    }
    EXPECT_EQ(pool.metrics().threads, 3U);
    EXPECT_EQ(pool.metrics().idle_threads, 0U);
    EXPECT_EQ(pool.metrics().queued, 2U);
    EXPECT_FALSE(entered.try_acquire());
    opened.release(5);
    entered.acquire();
    entered.acquire();
    wait_for_pool([&] { return pool.metrics().idle_threads == 3; });
    EXPECT_EQ(pool.metrics().threads_made, 3U);
}

TEST(BlockingPool, NeedsOneThreadForSequentialCalls) {
    blocking_pool pool(100);
    std::set<std::thread::id> threads;
    for (int i = 0; i < 20; ++i) {
        std::binary_semaphore done(0);
        pool.execute([&] {
            threads.insert(std::this_thread::get_id());
            done.release();
        });
        done.acquire();
        wait_for_pool([&] { return pool.metrics().idle_threads == 1; });
    }
    EXPECT_EQ(threads.size(), 1U);
}

TEST(BlockingPool, G8_ShrinksWhenIdle) {
    blocking_pool pool(pool_of(4, 1ms));
    std::latch together(4);
    for (int i = 0; i < 4; ++i) {
        pool.execute([&] { together.arrive_and_wait(); });
    }
    together.wait();
    wait_for_pool([&] { return pool.metrics().threads == 0; });
    EXPECT_EQ(pool.metrics().idle_threads, 0U);
    EXPECT_EQ(pool.metrics().threads_made, 4U);
    std::binary_semaphore done(0);
    pool.execute([&] { done.release(); }); // the pool grows again
    done.acquire();
    EXPECT_EQ(pool.metrics().threads_made, 5U);
}

TEST(BlockingPool, ThreadsExitAtOnceWithoutIdleTime) {
    blocking_pool pool(pool_of(2, 0ns));
    for (int i = 0; i < 20; ++i) {
        std::binary_semaphore done(0);
        pool.execute([&] { done.release(); });
        done.acquire();
    }
    wait_for_pool([&] { return pool.metrics().threads == 0; });
}

/// A thread receives a call while its idle time runs out.
TEST(BlockingPool, CallsThatRaceWithTheEndOfThreads) {
    blocking_pool pool(pool_of(3, 20us));
    std::atomic<int> calls = 0;
    const int count = coil_test::rounds(coil_test::sanitized ? 300 : 2000, 100'000);
    for (int i = 0; i < count; ++i) {
        std::binary_semaphore done(0);
        pool.execute([&] {
            ++calls;
            done.release();
        });
        done.acquire();
        if (i % 4 == 0) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(i % 60);
            while (std::chrono::steady_clock::now() < end) {
            }
        }
    }
    EXPECT_EQ(calls, count);
}

TEST(BlockingPool, TheMostRecentlyIdleThreadRunsNext) {
    blocking_pool pool(2);
    std::binary_semaphore go[2]{std::binary_semaphore(0), std::binary_semaphore(0)};
    std::thread::id id[2];
    std::latch both(2);
    for (int i = 0; i < 2; ++i) {
        pool.execute([&, i] {
            id[i] = std::this_thread::get_id();
            both.arrive_and_wait();
            go[i].acquire();
        });
    }
    both.wait();
    go[0].release();
    wait_for_pool([&] { return pool.metrics().idle_threads == 1; });
    go[1].release();
    wait_for_pool([&] { return pool.metrics().idle_threads == 2; });
    std::thread::id next;
    std::binary_semaphore done(0);
    pool.execute([&] {
        next = std::this_thread::get_id();
        done.release();
    });
    done.acquire();
    EXPECT_EQ(next, id[1]);
}

TEST(BlockingPool, G7_FirstInFirstOut) {
    blocking_pool pool(1);
    std::vector<int> order;
    io_context ctx;
    for (int i = 0; i < 200; ++i) {
        ctx.co_spawn([](blocking_pool& p, std::vector<int>& o, int number) -> task<> {
            co_await blocking(p, [&, number] { o.push_back(number); });
        }(pool, order, i));
    }
    ctx.run();
    ASSERT_EQ(order.size(), 200U);
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST(BlockingPool, G6_AFullQueueSuspendsAndNeverFails) {
    std::binary_semaphore entered(0);
    std::binary_semaphore opened(0);
    std::atomic<int> calls = 0;
    blocking_pool pool(pool_of(1, 10s, 3));
    pool.execute([&] {
        entered.release();
        opened.acquire();
    });
    entered.acquire();
    io_context ctx;
    for (int i = 0; i < 10; ++i) {
        ctx.co_spawn([](blocking_pool& p, std::atomic<int>& c) -> task<> {
            co_await blocking(p, [&] { ++c; });
        }(pool, calls));
    }
    ctx.post([&] {
        EXPECT_EQ(pool.metrics().queued, 3U);
        EXPECT_EQ(pool.metrics().waiting, 7U);
        pool.execute([&] { ++calls; }); // a context's thread may exceed the limit
        EXPECT_EQ(pool.metrics().waiting, 8U);
        opened.release();
    });
    ctx.run();
    EXPECT_GE(calls, 10);
    wait_for_pool([&] { return calls == 11; });
}

TEST(BlockingPool, G6_AFullQueueBlocksThreadsThatExecute) {
    std::counting_semaphore<> entered(0);
    std::counting_semaphore<> opened(0);
    const auto call = [&] {
        entered.release();
        opened.acquire();
    };
    blocking_pool pool(pool_of(1, 10s, 2)); // destroyed first: its calls use the variables above
    pool.execute(call);
    entered.acquire();
    pool.execute(call);
    pool.execute(call);
    std::atomic<bool> in = false;
    std::thread producer([&] {
        pool.execute(call);
        in = true;
    });
    wait_for_pool([&] { return pool.metrics().waiting == 1; });
    EXPECT_FALSE(in);
    opened.release();
    producer.join(); // one call has left the queue
    EXPECT_EQ(pool.metrics().queued, 2U);
    opened.release(3);
}

TEST(BlockingPool, StoresFunctionsWithTheirAlignment) {
    struct alignas(128) aligned {
        std::atomic<int>* misaligned;
        void operator()() const {
            // volatile: the compiler would otherwise deduce the result from the type
            const void* volatile place = this;
            *misaligned += reinterpret_cast<std::uintptr_t>(place) % 128 != 0 ? 1 : 0;
        }
    };
    std::atomic<int> misaligned{0};
    {
        std::latch called(8);
        blocking_pool pool(1);
        for (int i = 0; i < 8; ++i) {
            pool.execute([f = aligned{&misaligned}, &called] {
                f();
                called.count_down();
            });
        }
        called.wait();
    }
    EXPECT_EQ(misaligned, 0);
}

/// A call that submits to its own pool would deadlock if execute() blocked.
TEST(BlockingPool, ItsOwnCallsMayExceedTheQueueLimit) {
    std::latch done(4);
    blocking_pool pool(pool_of(1, 10s, 1));
    pool.execute([&] {
        for (int i = 0; i < 3; ++i) {
            pool.execute([&] { done.count_down(); });
        }
        done.count_down();
    });
    done.wait();
}

TEST(BlockingPool, G5_TheDestructorDropsQueuedCalls) {
    std::binary_semaphore entered(0);
    std::binary_semaphore opened(0);
    std::atomic<bool> ended = false;
    int destroyed = 0;
    auto pool = std::make_unique<blocking_pool>(1);
    pool->execute([&] {
        entered.release();
        opened.acquire();
        ended = true;
    });
    entered.acquire();
    pool->execute([&, d = coil_test::on_destruction(destroyed)] { ADD_FAILURE(); });
    io_context ctx;
    std::error_code error;
    std::atomic<bool> told = false;
    const auto home = std::this_thread::get_id();
    ctx.co_spawn([](blocking_pool& p, std::error_code& e, std::atomic<bool>& t,
                    std::thread::id here) -> task<> {
        try {
            co_await blocking(p, [] { ADD_FAILURE(); });
        } catch (const std::system_error& thrown) {
            e = thrown.code();
        }
        EXPECT_EQ(std::this_thread::get_id(), here);
        t = true;
    }(*pool, error, told, home));
    std::thread ender;
    ctx.post([&] { ender = std::thread([&] { pool.reset(); }); });
    std::thread opener([&] {
        while (!told) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(ended);
        opened.release();
    });
    ctx.run();
    opener.join();
    ender.join();
    EXPECT_TRUE(ended); // the destructor waits for a running call
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST(BlockingPool, TheDestructorJoinsItsThreads) {
    static std::atomic<int> threads_ended;
    threads_ended = 0;
    struct at_thread_end {
        ~at_thread_end() { ++threads_ended; }
    };
    for (int i = 0; i < 20; ++i) {
        std::latch together(4);
        {
            blocking_pool pool(4);
            for (int j = 0; j < 4; ++j) {
                pool.execute([&] {
                    thread_local at_thread_end local;
                    (void)local;
                    together.arrive_and_wait();
                });
            }
            together.wait();
        }
        ASSERT_EQ(threads_ended, 4 * (i + 1));
    }
}

TEST(BlockingPool, ItsThreadsHaveItsNameBlockSignalsAndAreBatchScheduled) {
    if (::sched_getscheduler(0) != SCHED_OTHER) {
        GTEST_SKIP() << "the tests run under another scheduling policy than SCHED_OTHER";
    }
    blocking_pool_options options;
    options.name = "a-pool-with-a-long-name";
    blocking_pool pool(options);
    std::binary_semaphore done(0);
    pool.execute([&] {
        char name[32]{};
        ::pthread_getname_np(::pthread_self(), name, sizeof name);
        EXPECT_STREQ(name, "a-pool-with-a-l");
        ::sigset_t blocked;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH | SCHED_RESET_ON_FORK);
        done.release();
    });
    done.acquire();
    ::sigset_t mine;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    EXPECT_EQ(::sigismember(&mine, SIGTERM), 0);
}

TEST(BlockingPool, G12_ExceptionsOfDetachedCallsAreReported) {
    testing::internal::CaptureStderr();
    {
        blocking_pool pool(1);
        std::binary_semaphore done(0);
        pool.execute([] { throw std::runtime_error("without an awaiter"); });
        pool.execute([&] { done.release(); });
        done.acquire();
    }
    EXPECT_NE(testing::internal::GetCapturedStderr().find("without an awaiter"), std::string::npos);
}

TEST(BlockingPool, G6_WithoutAnyThreadTheAwaitThrows) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  io_context ctx;
                  std::string complaint = "not run";
                  ctx.co_spawn([](std::string& c) -> task<> {
                      const ::rlimit none{0, 0};
                      if (::setrlimit(RLIMIT_NPROC, &none) != 0 ||
                          (::geteuid() == 0 && ::setuid(65534) != 0)) {
                          co_return; // the limit does not apply to root
                      }
                      try {
                          co_await blocking([] {});
                          c = "it was called";
                      } catch (const std::system_error& e) {
                          c = e.code() == std::errc::resource_unavailable_try_again
                                  ? ""
                                  : "another code";
                      }
                      if (default_blocking_pool().metrics().threads != 0) {
                          c = "the metrics count a thread that does not exist";
                      }
                  }(complaint));
                  ctx.run();
                  return complaint;
              }),
              "");
}

TEST(BlockingPool, TheDefaultOneStartsEmptyInAForkedChild) {
    coil::run([]() -> task<> { co_await blocking([] {}); }());
    EXPECT_GE(default_blocking_pool().metrics().threads, 1U);
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitized child of a multi-threaded program must not create threads";
    }
    EXPECT_EQ(coil_test::in_child([]() -> std::string {
                  if (default_blocking_pool().metrics().threads != 0) {
                      return "the metrics count the parent's threads";
                  }
                  return coil::run([]() -> task<int> {
                             co_return co_await blocking([] { return 5; });
                         }()) == 5
                             ? ""
                             : "no result";
              }),
              "");
}

TEST(BlockingPool, G6_TenThousandCallsOnSixtyFourThreads) {
    constexpr int count = coil_test::sanitized ? 1000 : 10'000;
    blocking_pool pool(64);
    std::atomic<int> calls = 0;
    std::atomic<int> at_once = 0;
    std::atomic<int> most = 0;
    int done = 0;
    io_context ctx;
    for (int i = 0; i < count; ++i) {
        ctx.co_spawn([](blocking_pool& p, std::atomic<int>& c, std::atomic<int>& now,
                        std::atomic<int>& m, int& d) -> task<> {
            co_await blocking(p, [&] {
                const int n = ++now;
                int seen = m;
                while (n > seen && !m.compare_exchange_weak(seen, n)) {
                }
                ++c;
                std::this_thread::sleep_for(100us);
                --now;
            });
            ++d;
        }(pool, calls, at_once, most, done));
    }
    ctx.run();
    EXPECT_EQ(calls, count);
    EXPECT_EQ(done, count);
    EXPECT_LE(most, 64);
    EXPECT_GT(most, 1);
}

TEST(BlockingPool, MayBeSharedByManyContexts) {
    blocking_pool pool(4);
    std::atomic<int> sum = 0;
    runtime contexts(2);
    const int each = coil_test::rounds(coil_test::sanitized ? 100 : 500, 20'000);
    for (int i = 0; i < 8; ++i) {
        contexts.co_spawn([](blocking_pool& p, std::atomic<int>& s, int n) -> task<> {
            for (int j = 0; j < n; ++j) {
                io_context& home = this_context();
                s += co_await blocking(p, [] { return 1; });
                EXPECT_EQ(&this_context(), &home);
            }
        }(pool, sum, each));
    }
    contexts.run();
    EXPECT_EQ(sum, 8 * each);
}

TEST(BlockingPool, AThreadThatAPinnedContextStartsMayUseAllProcessors) {
    const std::vector<int> all = detail::allowed_processors();
    if (all.size() < 2) {
        GTEST_SKIP() << "needs two processors";
    }
    const std::vector<int> last{all.back()};
    blocking_pool pool(1);
    io_context_options options;
    options.cpu_affinity = all.back();
    io_context ctx(options);
    auto main = [&]() -> task<> {
        EXPECT_EQ(detail::allowed_processors(), last);
        EXPECT_EQ(co_await blocking(pool, [] { return detail::allowed_processors(); }), all);
        EXPECT_EQ(detail::allowed_processors(), last);
    };
    ctx.co_spawn(main());
    ctx.run();
    EXPECT_EQ(detail::allowed_processors(), all);
}

} // namespace
