#include "support/run.hpp"

#include <coil/context/processors.hpp>
#include <coil/exec/executor.hpp>
#include <coil/exec/thread_pool.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

using coil::thread_pool;
using namespace std::chrono_literals;

static_assert(coil::executor<thread_pool>);
static_assert(coil::detail::work_executor<thread_pool>);

namespace {

/// Blocks a thread of a pool until it is opened.
class pool_gate {
public:
    explicit pool_gate(thread_pool& pool, int threads = 1) : threads_(threads), begun_(threads) {
        for (int i = 0; i < threads; ++i) {
            pool.execute([this] {
                begun_.count_down();
                open_.acquire();
                ended_.release();
            });
        }
        begun_.wait();
    }
    pool_gate(const pool_gate&) = delete;
    pool_gate& operator=(const pool_gate&) = delete;
    ~pool_gate() {
        open();
        for (int i = 0; i < threads_; ++i) {
            ended_.acquire();
        }
    }
    void open() {
        if (!std::exchange(is_open_, true)) {
            open_.release(threads_);
        }
    }

private:
    int threads_;
    std::latch begun_;
    std::counting_semaphore<> open_{0};
    std::counting_semaphore<> ended_{0};
    bool is_open_ = false;
};

/// Work that counts whether it was run or dropped.
class counted_work : public coil::detail::work {
public:
    counted_work() noexcept
        : work([](work& w, fate what) noexcept {
              auto& self = static_cast<counted_work&>(w);
              (what == fate::run ? self.ran : self.dropped).fetch_add(1);
          }) {}
    std::atomic<int> ran{0};
    std::atomic<int> dropped{0};
};

void pool_tree(thread_pool& pool, std::atomic<int>& count, int depth) {
    count.fetch_add(1, std::memory_order_relaxed);
    if (depth > 0) {
        for (int i = 0; i < 2; ++i) {
            pool.execute([&pool, &count, depth] { pool_tree(pool, count, depth - 1); });
        }
    }
}

std::vector<pid_t> threads_of(thread_pool& pool) {
    std::mutex mutex;
    std::vector<pid_t> threads;
    std::latch all(pool.size());
    for (unsigned i = 0; i < pool.size(); ++i) {
        pool.execute([&] {
            {
                const std::lock_guard lock(mutex);
                threads.push_back(::gettid());
            }
            all.arrive_and_wait();
        });
    }
    pool.drain();
    return threads;
}

TEST(ThreadPool, HasTheRequestedNumberOfThreads) {
    EXPECT_EQ(thread_pool().size(), coil::usable_processors());
    EXPECT_EQ(thread_pool(0).size(), coil::usable_processors());
    thread_pool pool(3);
    EXPECT_EQ(pool.size(), 3U);
    const std::vector<pid_t> threads = threads_of(pool);
    EXPECT_EQ(std::set<pid_t>(threads.begin(), threads.end()).size(), 3U);
    EXPECT_THROW(thread_pool(32'768), std::invalid_argument);
    EXPECT_THROW(thread_pool(-1), std::invalid_argument);
}

TEST(ThreadPool, ItsThreadsHaveNamesAndRunsHereIsTrueOnThem) {
    coil::thread_pool_options options;
    options.threads = 1;
    options.name = "sums";
    thread_pool pool(options);
    thread_pool other(1);
    char name[16]{};
    bool here = false;
    bool there = true;
    pool.execute([&] {
        ::pthread_getname_np(::pthread_self(), name, sizeof name);
        here = pool.runs_here();
        there = other.runs_here();
    });
    pool.drain();
    EXPECT_STREQ(name, "sums-0");
    EXPECT_TRUE(here);
    EXPECT_FALSE(there);
    EXPECT_FALSE(pool.runs_here());
}

TEST(ThreadPool, G1_EverythingRunsOnceWithManyProducers) {
    const int each = coil_test::rounds(coil_test::sanitized ? 500 : 3000, 200'000);
    constexpr int producers = 8;
    const auto slots = static_cast<std::size_t>(producers * each);
    const std::unique_ptr<std::atomic<int>[]> ran(new std::atomic<int>[slots] {});
    std::atomic<int> second{0};
    thread_pool pool(4);
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p) {
        threads.emplace_back([&, p] {
            for (int i = 0; i < each; ++i) {
                pool.execute([&, slot = static_cast<std::size_t>(p * each + i)] {
                    ran[slot].fetch_add(1);
                    if (slot % 2 == 0) {
                        pool.execute([&second] { second.fetch_add(1); });
                    }
                });
            }
        });
    }
    for (std::thread& t : threads) {
        t.join();
    }
    pool.drain();
    int wrong = 0;
    for (std::size_t i = 0; i < slots; ++i) {
        wrong += ran[i].load() != 1 ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(second.load(), producers * each / 2);
}

TEST(ThreadPool, G7_OneThreadRunsExternalWorkInSubmissionOrder) {
    thread_pool pool(1);
    std::vector<int> order;
    {
        const pool_gate gate(pool);
        for (int i = 0; i < 500; ++i) {
            pool.execute([&order, i] { order.push_back(i); });
        }
    }
    pool.drain();
    ASSERT_EQ(order.size(), 500U);
    for (int i = 0; i < 500; ++i) {
        EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
    }
}

TEST(ThreadPool, G7_WorkThatResubmitsItselfDelaysOthersABoundedNumberOfTurns) {
    struct again : coil::detail::work {
        explicit again(thread_pool& p) noexcept
            : work([](work& w, fate) noexcept {
                  auto& self = static_cast<again&>(w);
                  ++self.turns;
                  if (!self.others_ran) {
                      self.pool.submit(self);
                  }
              }),
              pool(p) {}
        thread_pool& pool;
        int turns = 0;
        bool others_ran = false;
    };
    thread_pool pool(1);
    again loops(pool);
    int turns_before_own = 0;
    {
        const pool_gate gate(pool);
        pool.execute([&] {
            // This function becomes the oldest work in the worker's queue; `loops`, submitted
            // last, runs first.
            pool.execute([&] {
                turns_before_own = loops.turns;
                loops.others_ran = true;
            });
            pool.submit(loops);
        });
    }
    pool.drain();
    EXPECT_GT(turns_before_own, 0);
    EXPECT_LE(turns_before_own, 64);

    loops.others_ran = false;
    loops.turns = 0;
    int turns_before_other = 0;
    {
        const pool_gate gate(pool);
        pool.submit(loops);
        pool.execute([&] {
            turns_before_other = loops.turns;
            loops.others_ran = true;
        });
    }
    pool.drain();
    EXPECT_GT(turns_before_other, 0);
    EXPECT_LE(turns_before_other, 64);
}

TEST(ThreadPool, G9_WorkMayWaitForWorkThatItHasSubmitted) {
    for (int round = 0; round < coil_test::rounds(50, 10'000); ++round) {
        thread_pool pool(3);
        std::binary_semaphore first(0);
        std::binary_semaphore second(0);
        pool.execute([&] {
            pool.execute([&] {
                pool.execute([&] { second.release(); });
                second.acquire();
                first.release();
            });
            first.acquire();
        });
        pool.drain();
    }
}

TEST(ThreadPool, G9_NoWakeUpIsLost) {
    thread_pool pool(2);
    const int rounds = coil_test::rounds(300, 20'000);
    for (int round = 0; round < rounds; ++round) {
        std::binary_semaphore ran(0);
        pool.execute([&] {
            if (round % 3 == 0) {
                pool.execute([&ran] { ran.release(); });
            } else {
                ran.release();
            }
        });
        ran.acquire();
    }
}

TEST(ThreadPool, G5_DrainWaitsForWorkSubmittedByWork) {
    thread_pool pool(3);
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> count{0};
        pool.execute([&] { pool_tree(pool, count, 7); });
        pool.drain();
        EXPECT_EQ(count.load(), 255);
    }
    pool.drain();
}

TEST(ThreadPool, G5_DrainWaitsForTheLastRunningWork) {
    thread_pool pool(2);
    std::atomic<bool> ended{false};
    pool.execute([&] {
        std::this_thread::sleep_for(5ms);
        ended = true;
    });
    std::thread another([&] {
        pool.drain();
        EXPECT_TRUE(ended);
    });
    pool.drain();
    EXPECT_TRUE(ended);
    another.join();
}

TEST(ThreadPool, G5_TheDestructorRunsWhatWasSubmitted) {
    std::atomic<int> count{0};
    {
        thread_pool pool(2);
        for (int i = 0; i < 100; ++i) {
            pool.execute([&] { count.fetch_add(1); });
        }
        pool.execute([&] { pool_tree(pool, count, 5); });
    }
    EXPECT_EQ(count.load(), 163);
}

TEST(ThreadPool, G5_StopDropsWhatIsQueued) {
    thread_pool pool(1);
    int destroyed = 0;
    std::atomic<int> ran{0};
    counted_work told;
    {
        pool_gate gate(pool);
        for (int i = 0; i < 50; ++i) {
            pool.execute([&ran, d = coil_test::on_destruction(destroyed)] { ran.fetch_add(1); });
        }
        pool.submit(told);
        pool.stop();
        EXPECT_EQ(destroyed, 50);
        EXPECT_EQ(told.dropped.load(), 1);
        pool.submit(told);
        EXPECT_EQ(told.dropped.load(), 2); // at once
        gate.open();
    }
    pool.join();
    pool.execute([&ran, d = coil_test::on_destruction(destroyed)] { ran.fetch_add(1); });
    EXPECT_EQ(destroyed, 51);
    EXPECT_EQ(ran.load(), 0);
    EXPECT_EQ(told.ran.load(), 0);
    pool.drain();
    pool.stop();
    pool.join();
}

TEST(ThreadPool, G5_StopDropsTheQueueOfABlockedThread) {
    thread_pool pool(2);
    std::array<counted_work, 10> works;
    std::binary_semaphore queued(0);
    std::binary_semaphore go_on(0);
    const auto gate = std::make_unique<pool_gate>(pool);
    pool.execute([&] {
        for (counted_work& w : works) {
            pool.submit(w);
        }
        queued.release();
        go_on.acquire();
        pool.submit(works[0]); // the pool is stopped by now
    });
    queued.acquire();
    pool.stop();
    for (const counted_work& w : works) {
        EXPECT_EQ(w.dropped.load(), 1);
    }
    go_on.release();
    gate->open();
    pool.join();
    EXPECT_EQ(works[0].dropped.load(), 2);
}

TEST(ThreadPool, G5_WorkMayStopThePool) {
    thread_pool pool(2);
    counted_work after;
    pool.execute([&] {
        pool.stop();
        pool.submit(after);
        EXPECT_EQ(after.dropped.load(), 1);
    });
    std::thread another([&] { pool.join(); });
    pool.join();
    another.join();
}

TEST(ThreadPool, G5_StoppedAtEveryPhaseItRunsOrDropsEachOnce) {
    constexpr int count = 64;
    for (int round = 0; round < coil_test::rounds(150, 10'000); ++round) {
        std::array<counted_work, count> outer;
        std::array<counted_work, count> inner;
        std::atomic<int> functions{0};
        thread_pool pool(2);
        std::thread producer([&] {
            for (std::size_t i = 0; i < count; ++i) {
                pool.submit(outer[i]);
                pool.execute([&, i, d = std::make_unique<int>(0)] {
                    functions.fetch_add(1);
                    pool.submit(inner[i]);
                });
            }
        });
        std::this_thread::sleep_for(std::chrono::microseconds(round % 300));
        pool.stop();
        producer.join();
        pool.join();
        int submitted = 0;
        for (std::size_t i = 0; i < count; ++i) {
            EXPECT_EQ(outer[i].ran + outer[i].dropped, 1);
            EXPECT_LE(inner[i].ran + inner[i].dropped, 1);
            submitted += inner[i].ran + inner[i].dropped;
        }
        EXPECT_EQ(submitted, functions.load());
    }
}

TEST(ThreadPool, WaitingForItselfIsAnError) {
    thread_pool pool(1);
    int refused = 0;
    pool.execute([&] {
        for (auto wait : {&thread_pool::drain, &thread_pool::join}) {
            try {
                (pool.*wait)();
            } catch (const std::system_error& e) {
                refused += e.code() == std::errc::resource_deadlock_would_occur ? 1 : 0;
            }
        }
    });
    pool.drain();
    EXPECT_EQ(refused, 2);
}

TEST(ThreadPoolDeathTest, ItsOwnThreadCannotDestroyIt) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            auto* const pool = new thread_pool(1);
            pool->execute([pool] { delete pool; });
            std::this_thread::sleep_for(10s);
        },
        "coil: a thread_pool is destroyed by one of its own threads");
}

TEST(ThreadPool, G12_AnExceptionIsReportedAndThePoolContinues) {
    testing::internal::CaptureStderr();
    bool ran = false;
    {
        thread_pool pool(1);
        pool.execute([] { throw std::runtime_error("no such luck"); });
        pool.execute([big = std::array<char, 200>{}] {
            throw std::runtime_error(big[0] == 0 ? "nor here" : "");
        });
        pool.execute([&] { ran = true; });
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("no such luck"), std::string::npos) << said;
    EXPECT_NE(said.find("nor here"), std::string::npos) << said;
    EXPECT_TRUE(ran);
}

TEST(ThreadPool, TakesFunctionsOfAnyKind) {
    struct alignas(128) aligned {
        void operator()() const { *right = reinterpret_cast<std::uintptr_t>(this) % 128 == 0; }
        bool* right;
    };
    struct throws_when_copied {
        throws_when_copied() = default;
        throws_when_copied(const throws_when_copied&) { throw std::runtime_error("copied"); }
        void operator()() const {}
    };
    thread_pool pool(2);
    int sum = 0;
    bool aligned_right = false;
    pool.execute([&sum, owned = std::make_unique<int>(1)] { sum += *owned; });
    pool.drain();
    pool.execute([&sum, big = std::array<int, 1000>{2}] { sum += big[0]; });
    pool.drain();
    auto named = [&sum] { sum += 3; };
    pool.execute(named);
    pool.drain();
    pool.execute(aligned{&aligned_right});
    const throws_when_copied thrower;
    EXPECT_THROW(pool.execute(thrower), std::runtime_error);
    pool.drain();
    EXPECT_EQ(sum, 6);
    EXPECT_TRUE(aligned_right);
}

TEST(ThreadPool, G9_PoolsAndContextsSubmitToEachOther) {
    thread_pool one(2);
    thread_pool two(2);
    coil::io_context context;
    std::atomic<int> count{0};
    auto submits = [](thread_pool& pool, thread_pool& other, std::atomic<int>& n) -> coil::task<> {
        for (int i = 0; i < 100; ++i) {
            pool.execute([&other, &n] { other.execute([&n] { n.fetch_add(1); }); });
            co_await coil::yield();
        }
    };
    context.co_spawn(submits(one, two, count));
    context.co_spawn(submits(two, one, count));
    context.run();
    one.drain();
    two.drain();
    one.drain(); // waits for what `two` has submitted
    EXPECT_EQ(count.load(), 200);
}

TEST(ThreadPool, G8_IdleThreadsSleepAndUseNoProcessor) {
    thread_pool pool(4);
    for (int i = 0; i < 1000; ++i) {
        pool.execute([] {});
    }
    for (const pid_t thread : threads_of(pool)) {
        coil_test::wait_until_asleep(thread);
    }
    if (coil_test::sanitized) {
        GTEST_SKIP() << "a sanitizer has threads of its own";
    }
    const std::chrono::nanoseconds least = coil_test::least_cpu_time(3, 50ms);
    EXPECT_LT(least, 1ms) << least.count() << " ns";
}

/// submit() does not access the pool after it has published the work: a thread notified by the work
/// may destroy the pool at any time. For the sanitizers.
TEST(ThreadPool, G5_WorkMayDestroyThePoolWhileItsSubmitterReturns) {
    for (int round = 0; round < coil_test::rounds(200, 20'000); ++round) {
        auto pool = std::make_unique<thread_pool>(1);
        std::binary_semaphore ran(0);
        if (round % 2 == 0) {
            pool->drain(); // probably asleep by then
        }
        std::thread submitter(
            [raw = pool.get(), &ran] { raw->execute([&ran] { ran.release(); }); });
        ran.acquire();
        pool.reset();
        submitter.join();
    }
}

TEST(ThreadPool, G6_IfAThreadCannotBeStartedTheOthersAreEnded) {
    if (coil_test::sanitized) {
        GTEST_SKIP() << "sanitizers need more address space than the limit allows";
    }
    const std::string complaint = coil_test::in_child([]() -> std::string {
        // glibc keeps the stacks of threads that have ended until the next one ends.
        std::thread([] {}).join();
        const ::rlimit little{1UL << 30U, 1UL << 30U};
        ::setrlimit(RLIMIT_AS, &little);
        try {
            thread_pool pool(1000);
            return "1000 threads were started";
        } catch (const std::system_error& e) {
            if (e.code() != std::errc::resource_unavailable_try_again) {
                return e.what();
            }
        }
        thread_pool pool(2); // there is space again
        int n = 0;
        pool.execute([&] { ++n; });
        pool.drain();
        return n == 1 ? "" : "it did not run";
    });
    EXPECT_EQ(complaint, "");
}

} // namespace
