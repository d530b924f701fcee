// runtime, several contexts that run as one: where tasks run, when run() ends, and how it stops.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Runtime : public ::testing::Test {};

runtime_options with_contexts(unsigned n) {
    runtime_options options;
    options.contexts = n;
    return options;
}

std::size_t index_of(runtime& rt, const io_context& context) {
    for (std::size_t i = 0; i < rt.size(); ++i) {
        if (&rt.context(i) == &context) {
            return i;
        }
    }
    return rt.size();
}

TEST_F(Runtime, HasAsManyContextsAsProcessorsByDefault) {
    const runtime rt;
    EXPECT_EQ(rt.size(), usable_processors());
    EXPECT_EQ(runtime(3).size(), 3U);
    EXPECT_EQ(runtime(with_contexts(2)).size(), 2U);
}

TEST_F(Runtime, RunWithNothingToDoReturns) {
    runtime rt(3);
    for (int i = 0; i < 20; ++i) {
        rt.run();
    }
}

TEST_F(Runtime, RoundRobinTakesTurns_AndEachContextHasItsThread) {
    runtime rt(3);
    std::mutex mutex;
    std::array<int, 3> tasks{};
    std::array<std::set<std::thread::id>, 3> threads;
    auto work = [&](runtime& all) -> task<> {
        co_await yield();
        const std::size_t i = index_of(all, this_context());
        const std::lock_guard lock(mutex);
        ++tasks.at(i);
        threads.at(i).insert(std::this_thread::get_id());
    };
    for (int i = 0; i < 300; ++i) {
        rt.co_spawn(work(rt));
    }
    rt.run();
    EXPECT_EQ(tasks, (std::array{100, 100, 100}));
    std::set<std::thread::id> all;
    for (const auto& each : threads) {
        EXPECT_EQ(each.size(), 1U);
        all.insert(each.begin(), each.end());
    }
    EXPECT_EQ(all.size(), 3U);
    EXPECT_TRUE(threads[0].contains(std::this_thread::get_id()));
}

TEST_F(Runtime, AFunctionMayDispatch) {
    runtime_options options = with_contexts(3);
    options.dispatcher = [](const runtime&) { return std::size_t{3 + 1}; };
    runtime rt(std::move(options));
    auto where = [](runtime& all) -> task<std::size_t> { co_return index_of(all, this_context()); };
    auto first = rt.spawn(where(rt));
    auto second = rt.spawn(where(rt));
    rt.run();
    EXPECT_EQ(first.get(), 1U); // modulo the number of contexts
    EXPECT_EQ(second.get(), 1U);
}

TEST_F(Runtime, LeastLoadedAvoidsBusyContexts) {
    runtime_options options = with_contexts(3);
    options.dispatcher = least_loaded();
    runtime rt(std::move(options));
    auto idle = []() -> task<> { co_await sleep_for(1h); };
    std::vector<join_handle<>> sleepers;
    for (int i = 0; i < 10; ++i) {
        sleepers.push_back(rt.context(0).spawn(idle()));
        sleepers.push_back(rt.context(2).spawn(idle()));
    }
    auto where = [](runtime& all) -> task<std::size_t> { co_return index_of(all, this_context()); };
    auto main = [&](runtime& all) -> task<> {
        std::array<int, 3> counts{};
        std::vector<join_handle<std::size_t>> handles;
        for (int i = 0; i < 9; ++i) {
            handles.push_back(all.spawn(where(all)));
        }
        for (auto& handle : handles) {
            ++counts.at(co_await handle);
        }
        EXPECT_EQ(counts, (std::array{0, 9, 0}));
        for (auto& sleeper : sleepers) {
            sleeper.cancel();
            co_await sleeper;
        }
    };
    rt.context(1).co_spawn(main(rt));
    rt.run();
}

TEST_F(Runtime, LoadCountsTasksReceivedInThisTurn) {
    runtime rt(1);
    std::uint64_t seen = 0;
    auto look = [&]() -> task<> {
        std::thread([&] { seen = rt.context(0).load(); }).join();
        co_return;
    };
    rt.co_spawn(look());
    rt.co_spawn([]() -> task<> { co_await yield(); }());
    rt.run();
    EXPECT_EQ(seen, 2U);
}

TEST_F(Runtime, LeastLoadedCountsTasksOnTheirWay) {
    runtime_options options = with_contexts(4);
    options.dispatcher = least_loaded();
    runtime rt(std::move(options));
    std::array<std::atomic<int>, 4> tasks{};
    auto work = [&](runtime& all) -> task<> {
        ++tasks.at(index_of(all, this_context()));
        co_return;
    };
    for (int i = 0; i < 400; ++i) {
        rt.co_spawn(work(rt)); // nothing runs yet
    }
    rt.run();
    for (const auto& each : tasks) {
        EXPECT_EQ(each, 100);
    }
}

TEST_F(Runtime, G9_SpawnsFromPlainThreadsBeforeDuringAndAfterRun) {
    runtime rt(2);
    std::atomic<int> done{0};
    auto count = [&]() -> task<> {
        co_await yield();
        ++done;
    };
    constexpr int threads = 4;
    const int each = coil_test::rounds(500, 20'000);
    rt.co_spawn(count());
    for (int round = 0; round < 3; ++round) {
        std::vector<std::thread> spawners;
        for (int i = 0; i < threads; ++i) {
            spawners.emplace_back([&] {
                for (int j = 0; j < each; ++j) {
                    rt.co_spawn(count());
                }
            });
        }
        rt.run(); // may end several times before all of them have spawned
        for (auto& thread : spawners) {
            thread.join();
        }
        rt.run();
        EXPECT_EQ(done, 1 + (round + 1) * threads * each);
    }
}

TEST_F(Runtime, RunWaitsForTasksSpawnedOnOtherContexts) {
    runtime rt(3);
    std::atomic<int> hops{0};
    struct relay {
        static task<> hop(runtime& all, std::atomic<int>& count, int left) {
            ++count;
            co_await yield();
            if (left > 0) {
                all.co_spawn(hop(all, count, left - 1)); // and this context has nothing left
            }
        }
    };
    const int length = coil_test::rounds(2'000, 100'000);
    rt.co_spawn(relay::hop(rt, hops, length));
    rt.run();
    EXPECT_EQ(hops, length + 1);
}

TEST_F(Runtime, AContextWithoutWorkServesTheOthersWhileTheyWork) {
    runtime rt(2);
    auto answer = []() -> task<int> { co_return 42; };
    auto main = [&](runtime& all) -> task<> {
        for (int i = 0; i < 200; ++i) {
            co_await sleep_for(i % 10 == 0 ? 1ms : 0ms); // the other context falls asleep
            EXPECT_EQ(co_await all.context(1).spawn(answer()), 42);
        }
    };
    rt.context(0).co_spawn(main(rt));
    rt.run();
}

TEST_F(Runtime, RunWaitsForTasksWhoseHandlesWereDropped) {
    runtime rt(2);
    std::atomic<bool> done{false};
    auto child = [&]() -> task<> {
        co_await sleep_for(5ms);
        done = true;
    };
    auto parent = [&]() -> task<> {
        coil::co_spawn(child());
        co_return;
    };
    rt.co_spawn(parent());
    rt.run();
    EXPECT_TRUE(done);
}

TEST_F(Runtime, BlockOn_RunsATaskAndReturnsItsResult) {
    runtime rt(2);
    auto answer = []() -> task<int> {
        co_await sleep_for(1ms);
        co_return 42;
    };
    EXPECT_EQ(rt.block_on(answer()), 42);
    EXPECT_EQ(rt.block_on(answer()), 42);
    auto fails = []() -> task<> {
        co_await yield();
        throw std::runtime_error("as expected");
    };
    EXPECT_THROW(rt.block_on(fails()), std::runtime_error);
}

TEST_F(Runtime, G5_BlockOn_DestroysTasksThatHaveNotEnded) {
    int destroyed = 0;
    runtime rt(2);
    auto forever = [](coil_test::on_destruction local) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await sleep_for(1h);
    };
    auto main = [&](runtime& all) -> task<> {
        all.context(0).co_spawn(forever(coil_test::on_destruction(destroyed)));
        co_await all.context(1).spawn([]() -> task<> { co_return; }());
        co_await yield();
    };
    rt.block_on(main(rt));
    EXPECT_EQ(destroyed, 1);
}

TEST_F(Runtime, BlockOn_WhileRunIsActiveOnlyWaits) {
    runtime rt(2);
    std::latch running(1);
    inplace_stop_source end;
    auto keep = [&]() -> task<> {
        running.count_down();
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
    };
    rt.co_spawn(keep(), end.get_token());
    std::thread other([&] {
        running.wait();
        auto answer = []() -> task<int> { co_return 7; };
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(rt.block_on(answer()), 7);
        }
        end.request_stop();
    });
    rt.run();
    other.join();
}

TEST_F(Runtime, BlockOn_OnAContextsThreadThrows) {
    runtime rt(1);
    auto main = [](runtime& all) -> task<> {
        try {
            all.block_on([]() -> task<> { co_return; }());
            ADD_FAILURE() << "it did not throw";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
        }
        co_return;
    };
    rt.co_spawn(main(rt));
    rt.run();
}

TEST_F(Runtime, RunTwiceAtATimeThrows) {
    runtime rt(2);
    auto main = [](runtime& all) -> task<> {
        EXPECT_THROW(all.run(), std::logic_error);
        co_return;
    };
    rt.co_spawn(main(rt));
    rt.run();
}

TEST_F(Runtime, ContextsCanBeUsedByThemselvesBetweenRuns) {
    runtime rt(2);
    rt.run();
    EXPECT_EQ(coil_test::run_on(rt.context(1),
                                []() -> task<int> {
                                    co_await sleep_for(1ms);
                                    co_return 3;
                                }()),
              3);
    rt.run();
}

TEST_F(Runtime, ThreadsHaveNames) {
    runtime_options options = with_contexts(2);
    options.context.name = "worker";
    runtime rt(std::move(options));
    auto name = []() -> task<std::string> {
        char buf[32]{};
        ::pthread_getname_np(::pthread_self(), buf, sizeof buf);
        co_return buf;
    };
    auto first = rt.context(0).spawn(name());
    auto second = rt.context(1).spawn(name());
    rt.run();
    EXPECT_NE(first.get(), "worker-0"); // the caller's thread keeps its name
    EXPECT_EQ(second.get(), "worker-1");
    EXPECT_EQ(rt.context(0).options().name, "worker-0");
}

TEST_F(Runtime, PinnedContextsKeepToOneProcessorEach) {
    runtime_options options;
    options.pin = true;
    runtime rt(std::move(options));
    const std::vector<int> allowed = detail::allowed_processors();
    auto processors = []() -> task<std::vector<int>> { co_return detail::allowed_processors(); };
    std::vector<join_handle<std::vector<int>>> handles;
    for (std::size_t i = 0; i < rt.size(); ++i) {
        handles.push_back(rt.context(i).spawn(processors()));
    }
    rt.run();
    for (std::size_t i = 0; i < rt.size(); ++i) {
        EXPECT_EQ(handles[i].get(), std::vector{allowed[i % allowed.size()]});
    }
    EXPECT_EQ(detail::allowed_processors(), allowed); // the caller's mask is as before
}

// ---- stop

TEST_F(Runtime, G5_StopFromATask) {
    int destroyed = 0;
    runtime rt(3);
    auto forever = [](coil_test::on_destruction local) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        co_await sleep_for(1h);
    };
    auto main = [](runtime& all) -> task<> {
        co_await sleep_for(2ms);
        all.stop();
        co_await sleep_for(1h);
    };
    std::array<int, 3> each{};
    for (std::size_t i = 0; i < 3; ++i) {
        rt.context(i).co_spawn(forever(coil_test::on_destruction(each.at(i))));
    }
    rt.co_spawn(main(rt));
    rt.run();
    EXPECT_EQ(each, (std::array{1, 1, 1}));
    EXPECT_EQ(destroyed, 0);
}

TEST_F(Runtime, G5_StopOfOneContextStopsAll) {
    runtime rt(3);
    auto forever = []() -> task<> { co_await sleep_for(1h); };
    auto main = []() -> task<> {
        co_await sleep_for(1ms);
        this_context().stop();
        co_await sleep_for(1h);
    };
    rt.context(0).co_spawn(forever());
    rt.context(1).co_spawn(main());
    rt.context(2).co_spawn(forever());
    rt.run();
}

TEST_F(Runtime, G5_AStopBeforeRunEndsTheNextRunOnly) {
    std::array<int, 2> destroyed{};
    runtime rt(2);
    auto work = [](coil_test::on_destruction local, bool& ran) -> task<> {
        const coil_test::on_destruction guard = std::move(local);
        ran = true;
        co_return;
    };
    bool ran = false;
    rt.context(0).co_spawn(work(coil_test::on_destruction(destroyed[0]), ran));
    rt.context(1).co_spawn(work(coil_test::on_destruction(destroyed[1]), ran));
    rt.stop();
    rt.stop();
    rt.run();
    EXPECT_FALSE(ran);
    EXPECT_EQ(destroyed, (std::array{1, 1}));
    rt.context(0).co_spawn(work(coil_test::on_destruction(destroyed[0]), ran));
    rt.run();
    EXPECT_TRUE(ran);
}

TEST_F(Runtime, G5_DestroyedWithoutRun) {
    std::array<int, 3> destroyed{};
    {
        runtime rt(3);
        auto work = [](coil_test::on_destruction local) -> task<> {
            const coil_test::on_destruction guard = std::move(local);
            ADD_FAILURE() << "the task ran";
            co_return;
        };
        for (auto& each : destroyed) {
            rt.co_spawn(work(coil_test::on_destruction(each)));
        }
    }
    EXPECT_EQ(destroyed, (std::array{1, 1, 1}));
}

/// Stops in every phase of a run in which the contexts submit work to each other all the time.
TEST_F(Runtime, G5_G9_StopAtAnyMoment) {
    struct relay {
        static task<> hop(runtime& all, std::atomic<int>& alive) {
            struct counted {
                explicit counted(std::atomic<int>& n) : alive(n) { ++alive; }
                counted(const counted&) = delete;
                ~counted() { --alive; }
                std::atomic<int>& alive;
            };
            const counted self(alive);
            for (;;) {
                co_await all.spawn([]() -> task<> { co_await yield(); }());
                co_await sleep_for(10us);
                co_await resume_on(all.context(1));
                co_await io::nop();
                co_await resume_on(all.context(0));
            }
        }
    };
    std::atomic<int> alive{0};
    const int rounds = coil_test::rounds(30, 500);
    for (int round = 0; round < rounds; ++round) {
        runtime rt(2);
        for (int i = 0; i < 8; ++i) {
            rt.co_spawn(relay::hop(rt, alive));
        }
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(round * 37 % 2000));
            rt.stop();
            rt.stop();
        });
        try {
            rt.run();
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        stopper.join();
        EXPECT_EQ(alive, 0);
        rt.run(); // may be stopped immediately by the second stop()
    }
}

TEST_F(Runtime, G9_StopRacesWithTheEnd) {
    for (int round = 0; round < coil_test::rounds(100, 2'000); ++round) {
        runtime rt(2);
        std::atomic<bool> started{false};
        std::thread stopper([&] {
            while (!started) {
                std::this_thread::yield();
            }
            rt.stop();
        });
        auto work = [&]() -> task<> {
            started = true;
            co_return;
        };
        auto handle = rt.spawn(work());
        rt.run();
        stopper.join();
        EXPECT_TRUE(handle.done());
    }
}

TEST_F(Runtime, G12_AnExceptionOfADetachedTaskGoesToTheHandler) {
    std::atomic<int> handled{0};
    runtime_options options = with_contexts(2);
    options.context.on_unhandled_exception = [&](const std::exception_ptr&) { ++handled; };
    runtime rt(std::move(options));
    auto fails = []() -> task<> {
        co_await yield();
        throw std::runtime_error("as expected");
    };
    for (int i = 0; i < 4; ++i) {
        rt.co_spawn(fails());
    }
    rt.run();
    EXPECT_EQ(handled, 4);
}

TEST_F(Runtime, G5_AStopCancelsJoinersOnOtherContexts) {
    runtime rt(2);
    auto forever = []() -> task<> { co_await sleep_for(1h); };
    auto stop = [](runtime& all) -> task<> {
        co_await sleep_for(1ms);
        all.stop();
    };
    auto handle = rt.context(1).spawn(forever());
    rt.context(0).co_spawn(stop(rt));
    rt.run();
    EXPECT_THROW(handle.get(), std::system_error);
}

/// Records the thread on which it is destroyed.
struct at_destruction {
    explicit at_destruction(std::function<void()> f) : call(std::move(f)) {}
    at_destruction(at_destruction&& other) noexcept : call(std::exchange(other.call, {})) {}
    ~at_destruction() {
        if (call) {
            call();
        }
    }
    std::function<void()> call;
};

task<> holds(at_destruction) { co_return; }

TEST_F(Runtime, G5_DestructorsOfTasksThatNeverStartedMayStopAndSpawn) {
    for (const bool runs : {false, true}) {
        std::atomic<int> destroyed{0};
        {
            runtime rt(2);
            for (int i = 0; i < 4; ++i) {
                rt.co_spawn(holds(at_destruction([&] {
                    ++destroyed;
                    rt.stop();
                    rt.co_spawn(holds(at_destruction([&] { ++destroyed; })));
                })));
            }
            rt.stop();
            if (runs) {
                rt.run();
            }
        }
        EXPECT_EQ(destroyed, 8);
    }
}

TEST_F(Runtime, G5_AStopDuringBlockOnEndsIt) {
    auto travels = [](runtime& rt) -> task<> {
        for (std::size_t i = 0;; ++i) {
            co_await resume_on(rt.context(i % rt.size()));
        }
    };
    for (int i = 0; i < 50; ++i) {
        runtime rt(2);
        std::thread stopper([&] {
            std::this_thread::yield();
            rt.stop();
        });
        EXPECT_THROW(rt.block_on(travels(rt)), std::system_error);
        stopper.join();
    }
}

TEST_F(Runtime, BlockOn_WaitsForATaskOnAForeignContext) {
    io_context elsewhere;
    elsewhere.start();
    auto there_and_back = [](io_context& other, bool back) -> task<int> {
        io_context& home = this_context();
        co_await resume_on(other);
        if (back) {
            co_await resume_on(home);
        }
        co_return 7;
    };
    runtime rt(2);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(rt.block_on(there_and_back(elsewhere, i % 2 == 0)), 7);
        EXPECT_EQ(coil::run(there_and_back(elsewhere, i % 2 == 0)), 7);
    }
    auto unrelated = []() -> task<int> { co_return 1; };
    EXPECT_EQ(elsewhere.spawn(unrelated()).get(), 1); // it was not stopped
    elsewhere.stop();
    elsewhere.join();
}

TEST_F(Runtime, ADispatcherThatThrowsHasNoEffect) {
    bool throws = true;
    runtime_options options = with_contexts(2);
    options.dispatcher = [&](const runtime&) -> std::size_t {
        return throws ? throw std::runtime_error("no context today") : 0;
    };
    runtime rt(options);
    auto one = []() -> task<int> { co_return 1; };
    EXPECT_THROW(rt.block_on(one()), std::runtime_error);
    throws = false;
    EXPECT_EQ(rt.block_on(one()), 1);
    rt.run();
}

TEST_F(Runtime, LeastLoadedCountsTasksThatATaskSpawns) {
    runtime_options options = with_contexts(4);
    options.dispatcher = least_loaded();
    runtime rt(options);
    std::array<std::atomic<int>, 4> here{};
    auto work = [](runtime& all, std::array<std::atomic<int>, 4>& counts) -> task<> {
        ++counts[index_of(all, this_context())];
        co_return;
    };
    auto gives_out = [&]() -> task<> {
        for (int i = 0; i < 400; ++i) {
            rt.co_spawn(work(rt, here));
        }
        co_return;
    };
    rt.context(0).co_spawn(gives_out());
    rt.run();
    EXPECT_LT(here[0], 200); // tasks on the other contexts end meanwhile
}

TEST_F(Runtime, ContextsCanBeUsedByThemselvesAfterAStop) {
    runtime rt(2);
    auto stops = [&]() -> task<> {
        rt.stop();
        co_return;
    };
    rt.co_spawn(stops());
    rt.run();
    rt.context(0).run();
    rt.context(1).run();
}

TEST_F(Runtime, TheNumberOfContextsMayBeAnyInteger) {
    const int n = 2;
    EXPECT_EQ(runtime{n}.size(), 2U);
    EXPECT_THROW(runtime{-1}, std::invalid_argument);
    EXPECT_NO_THROW(io_context{n});
}

TEST(Context, G9_PostCallsOnItsThread) {
    io_context context;
    context.start();
    std::vector<int> order;
    std::thread::id where;
    for (int i = 0; i < 100; ++i) {
        context.post([&order, &where, i] {
            order.push_back(i);
            where = std::this_thread::get_id();
        });
    }
    context.join();
    ASSERT_EQ(order.size(), 100U);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Context, AFailedThreadCancelsItsJoiners) {
    io_context_options options;
    options.cpu_affinity = 4000; // no machine has that many
    io_context context(options);
    auto nothing = []() -> task<> { co_return; };
    join_handle<> joined = context.spawn(nothing());
    context.start();
    EXPECT_THROW(joined.get(), std::system_error);
    EXPECT_THROW(context.join(), std::system_error);
}

TEST(Context, RunBetweenStartAndJoinIsRefused) {
    io_context context;
    context.start();
    EXPECT_THROW(context.run(), std::logic_error);
    context.join();
}

} // namespace
