// foreign_loop: level-triggered events, a closed watched descriptor, the deadline, interruptions.

#include "support/backends.hpp"
#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <coil/context/sleep.hpp>
#include <coil/interop/foreign_loop.hpp>

#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace coil;
using namespace std::chrono_literals;
using coil_test::descriptor;
using coil_test::pipe_pair;
using coil_test::socket_pair;
using clock = std::chrono::steady_clock;

class ForeignLoop : public ::testing::TestWithParam<io_backend> {
protected:
    void SetUp() override {
        if (GetParam() == io_backend::io_uring) {
            COIL_NEEDS_IO_URING();
        }
    }
    template <class F>
    void run(F f) {
        io_context context(coil_test::with([](auto& o) { o.backend = GetParam(); }));
        coil_test::run_on(context, f());
    }

    foreign_loop loop;
};

INSTANTIATE_TEST_SUITE_P(Backends, ForeignLoop,
                         ::testing::Values(io_backend::io_uring, io_backend::epoll),
                         [](const auto& backend) {
                             return backend.param == io_backend::epoll ? "epoll" : "io_uring";
                         });

TEST_P(ForeignLoop, ReportsLevels) {
    pipe_pair p;
    run([&]() -> task<> {
        loop.watch(p.in, EPOLLIN);
        p.put("abc");
        for (int i = 0; i < 3; ++i) { // until all is read
            const auto woken = co_await loop.wait();
            EXPECT_EQ(woken.ready.size(), 1U);
            EXPECT_EQ(woken.ready[0].fd, p.in);
            EXPECT_EQ(woken.ready[0].events, EPOLLIN);
            EXPECT_FALSE(woken.expired || woken.interrupted);
            char c = 0;
            EXPECT_EQ(::read(p.in, &c, 1), 1);
        }
        loop.set_deadline(clock::now() + 5ms);
        const auto woken = co_await loop.wait();
        EXPECT_TRUE(woken.ready.empty());
        EXPECT_TRUE(woken.expired);
    });
}

TEST_P(ForeignLoop, WakesForWhatIsWatchedWhileItWaits) {
    pipe_pair p;
    run([&]() -> task<> {
        auto other = spawn([](foreign_loop& l, pipe_pair& q) -> task<> {
            co_await sleep_for(2ms);
            l.watch(q.in, EPOLLIN);
            q.put("x");
        }(loop, p));
        const auto woken = co_await loop.wait();
        EXPECT_EQ(woken.ready.size(), 1U);
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, ChangesWhatIsWatched) {
    const socket_pair s;
    run([&]() -> task<> {
        loop.watch(s.a, EPOLLIN);
        loop.watch(s.a, EPOLLIN | EPOLLOUT);
        auto woken = co_await loop.wait();
        EXPECT_EQ(woken.ready.size(), 1U);
        EXPECT_EQ(woken.ready[0].events, EPOLLOUT);
        loop.unwatch(s.a);
        EXPECT_EQ(woken.ready[0].events, 0U); // an entry that is not processed yet
        loop.unwatch(s.a);                    // no effect
        loop.set_deadline(clock::now() + 2ms);
        woken = co_await loop.wait();
        EXPECT_TRUE(woken.ready.empty() && woken.expired);
        loop.watch(s.a, EPOLLOUT);
        loop.watch(s.a, 0);
        loop.set_deadline(clock::now() + 2ms);
        woken = co_await loop.wait();
        EXPECT_TRUE(woken.ready.empty() && woken.expired);
    });
}

TEST_P(ForeignLoop, AnUnwatchedDescriptorIsNotReportedToAWaitThatItWoke) {
    pipe_pair p;
    run([&]() -> task<> {
        loop.watch(p.in, EPOLLIN);
        auto other = spawn([](foreign_loop& l, pipe_pair& q) -> task<> {
            co_await sleep_for(1ms);
            q.put("x"); // completes the wait's operation
            l.unwatch(q.in);
        }(loop, p));
        loop.set_deadline(clock::now() + 10ms);
        const auto woken = co_await loop.wait();
        EXPECT_TRUE(woken.ready.empty() && woken.expired);
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, APeerSeesTheEndWhenAWatchedDescriptorIsClosed) {
    socket_pair s;
    run([&]() -> task<> {
        loop.watch(s.a, EPOLLIN);
        auto other = spawn([](socket_pair& pair) -> task<> {
            co_await sleep_for(2ms); // the wait is suspended
            ::close(pair.a.release());
            char c = 0;
            EXPECT_EQ(co_await timeout(io::recv(pair.b, {&c, 1}, 0), 2s), 0);
        }(s));
        loop.set_deadline(clock::now() + 20ms);
        const auto woken = co_await loop.wait();
        EXPECT_TRUE(woken.ready.empty() && woken.expired);
        co_await std::move(other);
        // The next descriptor with this number refers to another file.
        const socket_pair next;
        loop.watch(next.a, EPOLLOUT);
        EXPECT_EQ((co_await loop.wait()).ready.size(), 1U);
    });
}

TEST_P(ForeignLoop, ReportsMoreThanOneBatch) {
    std::vector<pipe_pair> many(100);
    run([&]() -> task<> {
        for (pipe_pair& p : many) {
            loop.watch(p.in, EPOLLIN);
            p.put("x");
        }
        std::size_t read = 0;
        while (read < many.size()) {
            const auto woken = co_await loop.wait();
            EXPECT_FALSE(woken.ready.empty());
            for (const auto& [fd, events] : woken.ready) {
                char c = 0;
                EXPECT_EQ(::read(fd, &c, 1), 1);
                ++read;
            }
        }
    });
}

TEST_P(ForeignLoop, DoesNotStarveOtherTasks) {
    const socket_pair s;
    run([&]() -> task<> {
        loop.watch(s.a, EPOLLOUT); // always ready
        auto other = spawn([]() -> task<> { co_await sleep_for(2ms); }());
        while (!other.done()) {
            static_cast<void>(co_await loop.wait());
        }
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, ADeadlineExpiresOnce) {
    run([&]() -> task<> {
        const auto begin = clock::now();
        loop.set_deadline(begin + 5ms);
        EXPECT_TRUE((co_await loop.wait()).expired);
        EXPECT_GE(clock::now() - begin, 5ms);
        loop.set_deadline(begin); // in the past
        EXPECT_TRUE((co_await loop.wait()).expired);
        loop.set_deadline({});
        EXPECT_TRUE((co_await loop.wait()).expired);
        loop.set_deadline(clock::now() + 1ms);
        loop.clear_deadline();
        EXPECT_THROW(co_await timeout(loop.wait(), 10ms), std::system_error);
    });
}

TEST_P(ForeignLoop, ADeadlineMayChangeWhileATaskWaits) {
    run([&]() -> task<> {
        auto other = spawn([](foreign_loop& l) -> task<> {
            co_await yield(); // the other task waits
            l.set_deadline(clock::now() + 3ms);
        }(loop));
        loop.set_deadline(clock::now() + 1h);
        EXPECT_TRUE((co_await loop.wait()).expired);
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, ADeadlineMayBePostponedWhileATaskWaits) {
    run([&]() -> task<> {
        const auto begin = clock::now();
        auto other = spawn([](foreign_loop& l, clock::time_point later) -> task<> {
            co_await yield();
            l.set_deadline(later);
        }(loop, begin + 30ms));
        loop.set_deadline(begin + 5ms);
        EXPECT_TRUE((co_await loop.wait()).expired);
        EXPECT_GE(clock::now() - begin, 30ms);
        co_await std::move(other);
        loop.set_deadline(clock::now() + 1h); // later than the timer was set to last
        loop.set_deadline(clock::now() + 3ms);
        EXPECT_TRUE((co_await loop.wait()).expired);
    });
}

// The timer of a deadline that was cleared expires, and must not wake the context again and again.
TEST_P(ForeignLoop, AClearedDeadlineCostsNoTime) {
    run([&]() -> task<> {
        auto other = spawn([](foreign_loop& l) -> task<> {
            co_await yield();
            l.clear_deadline();
        }(loop));
        loop.set_deadline(clock::now() + 2ms);
        const std::clock_t begin = std::clock();
        EXPECT_THROW(co_await timeout(loop.wait(), 300ms), std::system_error);
        EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC * 15 / 100);
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, ADeadlineMayBeClearedWhileATaskWaits) {
    run([&]() -> task<> {
        auto other = spawn([](foreign_loop& l) -> task<> {
            co_await yield();
            l.clear_deadline();
        }(loop));
        loop.set_deadline(clock::now() + 200ms);
        EXPECT_THROW(co_await timeout(loop.wait(), 250ms), std::system_error);
        co_await std::move(other);
    });
}

TEST_P(ForeignLoop, IsInterruptedBeforeAndDuringAWait) {
    run([&]() -> task<> {
        loop.interrupt();
        loop.interrupt();
        EXPECT_TRUE((co_await loop.wait()).interrupted);
        const std::jthread other([this] {
            std::this_thread::sleep_for(2ms);
            loop.interrupt();
        });
        EXPECT_TRUE((co_await loop.wait()).interrupted);
        EXPECT_THROW(co_await timeout(loop.wait(), 5ms), std::system_error);
    });
}

TEST_P(ForeignLoop, NoInterruptionIsLost) {
    const int many = coil_test::rounds(20'000, 500'000);
    std::atomic<int> posted = 0;
    run([&]() -> task<> {
        const std::jthread other([&] {
            for (int i = 0; i < many; ++i) {
                posted.fetch_add(1, std::memory_order_relaxed);
                loop.interrupt();
            }
        });
        while (posted.load(std::memory_order_relaxed) < many) {
            const auto woken = co_await timeout(loop.wait(), 30s);
            EXPECT_TRUE(woken.interrupted);
        }
    });
}

TEST_P(ForeignLoop, AStopCancelsTheWaitAndLosesNothing) {
    pipe_pair p;
    run([&]() -> task<> {
        loop.watch(p.in, EPOLLIN);
        inplace_stop_source stop;
        auto waiting =
            spawn([](foreign_loop& l) -> task<> { static_cast<void>(co_await l.wait()); }(loop),
                  stop.get_token());
        co_await sleep_for(1ms);
        stop.request_stop();
        p.put("x");
        try {
            co_await std::move(waiting);
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        EXPECT_EQ((co_await loop.wait()).ready.size(), 1U);
    });
}

TEST_P(ForeignLoop, AContextThatStopsDestroysTheWait) {
    io_context context(coil_test::with([](auto& o) { o.backend = GetParam(); }));
    context.co_spawn([](foreign_loop& l) -> task<> { static_cast<void>(co_await l.wait()); }(loop));
    context.co_spawn([]() -> task<> {
        co_await sleep_for(1ms);
        this_context().stop();
    }());
    context.run();
    loop.interrupt();
    run([&]() -> task<> { EXPECT_TRUE((co_await loop.wait()).interrupted); });
}

TEST_P(ForeignLoop, RefusesWhatEpollRefuses) {
    EXPECT_THROW(loop.watch(-1, EPOLLIN), std::system_error);
    char name[] = "/tmp/coil-foreign-XXXXXX";
    const descriptor file{::mkstemp(name)};
    ::unlink(name);
    EXPECT_THROW(loop.watch(file, EPOLLIN), std::system_error);
}

TEST_P(ForeignLoop, TwoWaitingTasksTerminateWithAMessage) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(run([&]() -> task<> {
                     [[maybe_unused]] auto one = spawn([](foreign_loop& l) -> task<> {
                         static_cast<void>(co_await l.wait());
                     }(loop));
                     static_cast<void>(co_await loop.wait());
                 }),
                 "two tasks wait for a foreign_loop");
}

} // namespace
