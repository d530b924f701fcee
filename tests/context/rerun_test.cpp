// One context that runs repeatedly, on different threads.

#include "support/descriptors.hpp"
#include "support/run.hpp"
#include "support/running_backend.hpp"

#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Rerun : public ::testing::Test {};

/// Uses the ring, the timers and the inbox.
task<int> work() {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        sum += co_await io::nop();
        sum += co_await sleep_for(100us);
        co_await yield();
    }
    co_return sum + 1;
}

TEST_F(Rerun, OnTheSameThread) {
    io_context ctx;
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(coil_test::run_on(ctx, work()), 1);
    }
}

TEST_F(Rerun, OnManyThreadsOneAfterTheOther) {
    io_context ctx;
    for (int i = 0; i < 20; ++i) {
        auto handle = ctx.spawn(work());
        std::thread([&] { ctx.run(); }).join();
        ASSERT_TRUE(handle.done());
        ASSERT_EQ(handle.get(), 1);
    }
}

TEST_F(Rerun, AlternatelyOnTwoLiveThreads) {
    io_context ctx;
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(coil_test::run_on(ctx, work()), 1);
        auto handle = ctx.spawn(work());
        std::thread other([&] { ctx.run(); });
        other.join();
        ASSERT_EQ(handle.get(), 1);
    }
}

TEST_F(Rerun, StartAndJoinAgainAndAgain) {
    io_context ctx(coil_test::with([](auto& o) { o.name = "again"; }));
    for (int i = 0; i < 20; ++i) {
        auto handle = ctx.spawn(work());
        ctx.start();
        ASSERT_EQ(handle.get(), 1);
        ctx.join();
        ctx.join();
    }
}

TEST_F(Rerun, LateStopsDoNotEndTheNextRun) {
    auto answer = []() -> task<int> {
        co_await yield();
        co_return 42;
    };
    io_context ctx;
    for (int i = 0; i < 50; ++i) {
        ctx.start();
        std::thread another([&] { ctx.stop(); });
        ctx.stop();
        another.join();
        ctx.stop();
        ctx.join();
        ctx.start();
        EXPECT_EQ(ctx.spawn(answer()).get(), 42);
        ctx.join();
    }
}

TEST_F(Rerun, StartTwiceThrows) {
    io_context ctx;
    auto handle = ctx.spawn(work());
    ctx.start();
    EXPECT_THROW(ctx.start(), std::logic_error);
    ctx.join();
    EXPECT_EQ(handle.get(), 1);
}

TEST_F(Rerun, StartNamesItsThread) {
    io_context ctx(coil_test::with([](auto& o) { o.name = "a name that is too long"; }));
    auto name = []() -> task<std::string> {
        char buf[64] = {};
        ::pthread_getname_np(::pthread_self(), buf, sizeof buf);
        co_return buf;
    };
    auto handle = ctx.spawn(name());
    ctx.start();
    EXPECT_EQ(handle.get(), "a name that is ");
    ctx.join();
}

TEST_F(Rerun, ManyContextsOnOneThreadInTurn) {
    for (int i = 0; i < 50; ++i) {
        io_context ctx(8);
        ASSERT_EQ(coil_test::run_on(ctx, work()), 1);
    }
}

TEST_F(Rerun, DestroyedByAnotherThreadItReleasesTheRegisteredRing) {
    COIL_NEEDS_IO_URING();
    // A thread can have at most sixteen registered rings, so keeping one per context would exhaust
    // them.
    std::vector<std::unique_ptr<io_context>> contexts;
    for (int i = 0; i < 40; ++i) {
        contexts.push_back(std::make_unique<io_context>(8));
    }
    std::latch ran(1);
    std::latch destroyed(1);
    std::uint32_t shortcut = 0;
    std::thread runner([&] {
        for (auto& ctx : contexts) {
            EXPECT_EQ(coil_test::run_on(*ctx, work()), 1);
        }
        ran.count_down();
        destroyed.wait();
        uring::ring r(8);
        r.register_ring_fd();
        shortcut = r.get_backend().direct().flags;
    });
    ran.wait();
    contexts.clear();
    destroyed.count_down();
    runner.join();
    // This thread cannot register another ring.
    EXPECT_EQ(shortcut, uring::enter_flag::registered_ring);
}

TEST_F(Rerun, StartedWithNothingToDo_WaitsForWork) {
    io_context ctx;
    ctx.start();
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(ctx.spawn(work()).get(), 1);
    }
    ctx.join();
}

TEST_F(Rerun, JoinLetsTheTasksFinish) {
    io_context ctx;
    ctx.start();
    auto slow = []() -> task<int> {
        co_await sleep_for(20ms);
        co_return 5;
    };
    auto handle = ctx.spawn(slow());
    ctx.join();
    EXPECT_TRUE(handle.done());
    EXPECT_EQ(handle.get(), 5);
}

/// Blocks a loop while it processes its inbox, until the test releases it.
struct obstacle : detail::queue_node {
    explicit obstacle(io_context& ctx) {
        deliver = [](detail::queue_node& node, detail::event_loop&) noexcept {
            auto& self = static_cast<obstacle&>(node);
            self.reached.set_value();
            self.let_go.get_future().wait();
        };
        ctx.loop().post(*this);
        reached.get_future().wait();
    }
    std::promise<void> reached;
    std::promise<void> let_go;
};

TEST_F(Rerun, G9_JoinRunsTasksSpawnedAfterTheInboxWasProcessed) {
    io_context ctx;
    ctx.start();
    obstacle in_the_inbox(ctx);
    auto handle = ctx.spawn(work());
    ctx.loop().release_work_guard(); // as join() does before it blocks
    in_the_inbox.let_go.set_value();
    ctx.join();
    ASSERT_TRUE(handle.done());
    EXPECT_EQ(handle.get(), 1);
}

TEST_F(Rerun, RunWhileItRunsThrows) {
    io_context ctx;
    ctx.start();
    auto handle = ctx.spawn(work());
    EXPECT_EQ(handle.get(), 1);
    EXPECT_THROW(ctx.run(), std::logic_error);
    ctx.stop();
    ctx.join();
}

TEST_F(Rerun, ManyContextsOnManyThreadsAtOnce) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < coil_test::rounds(20, 500); ++i) {
                EXPECT_EQ(coil::run(work()), 1);
            }
        });
    }
    for (auto& t : threads) {
        t.join();
    }
}

TEST_F(Rerun, AHundredContextsAtOnce) {
    std::vector<std::unique_ptr<io_context>> contexts;
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < 100; ++i) {
        contexts.push_back(std::make_unique<io_context>(8));
        handles.push_back(contexts.back()->spawn(work()));
        contexts.back()->start();
    }
    for (auto& h : handles) {
        EXPECT_EQ(h.get(), 1);
    }
}

TEST_F(Rerun, AffinityHoldsWhileItRuns) {
    const int here = ::sched_getcpu();
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    io_context ctx(coil_test::with([&](auto& o) { o.cpu_affinity = here; }));
    auto processors = []() -> task<int> {
        cpu_set_t mine;
        ::sched_getaffinity(0, sizeof mine, &mine);
        co_await yield();
        co_return CPU_COUNT(&mine);
    };
    EXPECT_EQ(coil_test::run_on(ctx, processors()), 1);
    cpu_set_t after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST_F(Rerun, AnImpossibleAffinityIsAnErrorThatNamesIt) {
    io_context ctx(coil_test::with([](auto& o) { o.cpu_affinity = 4000; }));
    try {
        ctx.run();
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        EXPECT_NE(std::string(e.what()).find("cpu_affinity 4000"), std::string::npos) << e.what();
    }
}

TEST_F(Rerun, JoinRethrowsWhatMadeTheThreadFail) {
    io_context ctx(coil_test::with([](auto& o) { o.cpu_affinity = 4000; }));
    ctx.start();
    EXPECT_THROW(ctx.join(), std::system_error);
    ctx.join();
}

} // namespace
