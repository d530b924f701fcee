// Loops of awaits that never have to wait: the other coroutines of the context still run.

#include "support/run.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

using namespace coil;
using namespace std::chrono_literals;

namespace {

/// Awaits that have nothing to wait for may complete immediately this many times in a row.
constexpr int budget = 128;
/// A loop that starves others gives up, so that the test fails instead of hanging.
constexpr int hopeless = 100'000;

/// Awaits in a loop until another coroutine has run, and returns the number of awaits.
task<int> awaits_until_another_runs(std::function<task<>()> await_once) {
    bool another_ran = false;
    co_spawn([](bool& ran) -> task<> {
        ran = true;
        co_return;
    }(another_ran));
    int awaits = 0;
    while (!another_ran && awaits < hopeless) {
        co_await await_once();
        ++awaits;
    }
    co_return awaits;
}

void expect_fair(const std::function<task<>()>& await_once) {
    const int awaits = run(awaits_until_another_runs(await_once));
    EXPECT_GE(awaits, budget / 2);
    EXPECT_LE(awaits, budget + 2); // plus the one that suspends, and one that fills a buffer
}

// mistake 17: a loop locks a free mutex, or receives from a full channel
// shows: nothing: after 128 such awaits the next one lets the other coroutines run
TEST(Starvation, G7_Mutex) {
    mutex m;
    expect_fair([&]() -> task<> {
        co_await m.lock();
        m.unlock();
    });
    EXPECT_TRUE(m.try_lock());
    m.unlock();
}

TEST(Starvation, G7_SharedMutex) {
    shared_mutex m;
    expect_fair([&]() -> task<> {
        co_await m.lock_shared();
        m.unlock_shared();
    });
}

TEST(Starvation, G7_Semaphore) {
    counting_semaphore<> permits(hopeless);
    expect_fair([&]() -> task<> { co_await permits.acquire(); });
}

TEST(Starvation, G7_Event) {
    event set(true);
    expect_fair([&]() -> task<> { co_await set.wait(); });
}

TEST(Starvation, G7_AChannelWithElements) {
    channel<int> c(unbounded);
    for (int i = 0; i < hopeless; ++i) {
        ASSERT_TRUE(c.try_send(i));
    }
    int expected = 0;
    expect_fair([&]() -> task<> { EXPECT_EQ(co_await c.recv(), expected++); });
}

TEST(Starvation, G7_AChannelWithSpace) {
    channel<int> c(unbounded);
    int sent = 0;
    expect_fair([&]() -> task<> { co_await c.send(sent++); });
    for (int i = 0; i < sent; ++i) {
        EXPECT_EQ(c.try_recv(), i);
    }
}

TEST(Starvation, G7_AClosedChannel) {
    channel<int> c(1);
    c.close();
    expect_fair([&]() -> task<> { EXPECT_FALSE(co_await c.recv()); });
}

TEST(Starvation, G7_ChildrenOfACombination) {
    event set(true);
    expect_fair([&]() -> task<> { static_cast<void>(co_await when_all(set.wait(), set.wait())); });
}

/// A byte_source that has lines without end.
struct endless_lines {
    task<io_result> read_some(mutable_buffer buf) {
        auto* const bytes = static_cast<char*>(buf.data());
        for (std::size_t i = 0; i < buf.size(); ++i) {
            bytes[i] = i % 2 == 0 ? 'x' : '\n';
        }
        co_return io_result(static_cast<int>(buf.size()));
    }
};

TEST(Starvation, G7_LinesInABuffer) {
    buffered_reader reader(endless_lines{});
    auto lines = reader.lines();
    expect_fair([&]() -> task<> {
        const auto line = co_await lines.next();
        EXPECT_EQ(line, "x");
    });
}

TEST(Starvation, G7_BytesInABuffer) {
    buffered_reader reader(endless_lines{});
    char c = 0;
    expect_fair([&]() -> task<> { EXPECT_EQ(co_await reader.read_exact({&c, 1}), 1); });
}

TEST(Starvation, G7_AStopFromAnotherThreadArrives) {
    mutex m;
    io_context ctx;
    ctx.co_spawn([](mutex& it) -> task<> {
        for (;;) {
            co_await it.lock();
            it.unlock();
        }
    }(m));
    std::thread stopper([&] {
        std::this_thread::sleep_for(20ms);
        ctx.stop();
    });
    ctx.run();
    stopper.join();
}

TEST(Starvation, G7_ATimerFires) {
    event set(true);
    run([](event& e) -> task<> {
        const auto loops = [](event& it) -> task<> {
            for (;;) {
                co_await it.wait();
            }
        };
        EXPECT_THROW(co_await timeout(loops(e), 5ms), std::system_error);
    }(set));
}

/// Awaits for ever, and counts the awaits that have completed.
template <class Await>
task<> awaits_for_ever(Await await_once, int& completed) {
    for (;;) {
        co_await await_once();
        ++completed;
    }
}

TEST(Starvation, G7_WhatADestroyedCoroutineHadTakenIsGivenBack) {
    counting_semaphore<> permits(hopeless);
    channel<int> c(unbounded);
    for (int i = 0; i < hopeless; ++i) {
        ASSERT_TRUE(c.try_send(i));
    }
    int acquired = 0;
    int received = 0;
    {
        io_context ctx;
        ctx.co_spawn(awaits_for_ever([&] { return permits.acquire(); }, acquired));
        ctx.co_spawn(awaits_for_ever([&] { return c.recv(); }, received));
        ctx.co_spawn([](io_context& all) -> task<> {
            all.stop(); // the others are in the ready queue, each with an unused permit or element
            co_return;
        }(ctx));
        ctx.run();
    }
    EXPECT_GE(acquired, budget);
    EXPECT_LT(acquired, hopeless);
    int left = 0;
    while (permits.try_acquire()) {
        ++left;
    }
    EXPECT_EQ(left, hopeless - acquired);
    EXPECT_GE(received, budget);
    EXPECT_EQ(c.try_recv(), received);
}

TEST(Starvation, G7_AStopBeforeItResumesGivesBack) {
    counting_semaphore<> permits(budget + 10);
    run([](counting_semaphore<>& all) -> task<> {
        inplace_stop_source source;
        int acquired = 0;
        auto taker =
            spawn(awaits_for_ever([&all] { return all.acquire(); }, acquired), source.get_token());
        co_await yield(); // the taker has used up its budget and is ready again
        source.request_stop();
        EXPECT_THROW(co_await std::move(taker), std::system_error);
        EXPECT_EQ(acquired, budget);
    }(permits));
    int left = 0;
    while (permits.try_acquire()) {
        ++left;
    }
    EXPECT_EQ(left, 10);
}

TEST(Starvation, G7_FewAwaitsDoNotSuspend) {
    run([]() -> task<> {
        mutex m;
        bool another_ran = false;
        co_spawn([](bool& ran) -> task<> {
            ran = true;
            co_return;
        }(another_ran));
        for (int i = 0; i < budget; ++i) {
            co_await m.lock();
            m.unlock();
        }
        EXPECT_FALSE(another_ran);
        co_await m.lock();
        m.unlock();
        EXPECT_TRUE(another_ran);
    }());
}

} // namespace
