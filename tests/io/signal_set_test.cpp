// signal_set: waiting for signals.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class SignalSet : public ::testing::Test {
protected:
    static void send(int signal) { ASSERT_EQ(::kill(::getpid(), signal), 0); }
    static bool is_blocked(int signal) {
        ::sigset_t now;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
        return ::sigismember(&now, signal) == 1;
    }
};

TEST_F(SignalSet, ReturnsTheNumberOfASignal) {
    const signal_set signals{SIGUSR1, SIGUSR2};
    auto main = [](const signal_set& set) -> task<> {
        send(SIGUSR1); // before next() waits
        EXPECT_EQ(co_await set.next(), SIGUSR1);
        auto later = []() -> task<> {
            co_await sleep_for(1ms);
            send(SIGUSR2);
        };
        co_spawn(later());
        EXPECT_EQ(co_await set, SIGUSR2);
        send(SIGUSR1);
        send(SIGUSR2);
        std::set<int> both{co_await set.next()};
        both.insert(co_await set.next());
        EXPECT_EQ(both, (std::set{SIGUSR1, SIGUSR2}));
    };
    coil::run(main(signals));
}

TEST_F(SignalSet, ANamedAwaitableWaitsForASignalEachTimeItIsAwaited) {
    coil::run([]() -> task<> {
        const signal_set signals{SIGUSR1, SIGUSR2};
        auto next = signals.next();
        for (const int signal : {SIGUSR1, SIGUSR2, SIGUSR1}) {
            send(signal);
            EXPECT_EQ(co_await next, signal);
        }
        send(SIGUSR2);
        EXPECT_EQ(co_await std::move(next), SIGUSR2);
    }());
}

TEST_F(SignalSet, WakesASleepingContext) {
    signal_set signals(SIGUSR1);
    const pid_t waiter = ::gettid();
    std::thread other([waiter] { // inherits the mask
        coil_test::wait_until_asleep(waiter);
        send(SIGUSR1);
    });
    auto main = [](const signal_set& set) -> task<int> { co_return co_await set; };
    EXPECT_EQ(coil::run(main(signals)), SIGUSR1);
    other.join();
}

TEST_F(SignalSet, G3_CancelledAndLimited_TheSignalIsNotLost) {
    const signal_set signals{SIGUSR1};
    auto waits = [](const signal_set& set) -> task<int> { co_return co_await set; };
    auto main = [](auto w, const signal_set& set) -> task<> {
        EXPECT_EQ(co_await timeout(set.next(), 1ms), -ETIMEDOUT);
        auto handle = spawn(w(set));
        co_await yield();
        handle.cancel();
        EXPECT_EQ(co_await handle, -ECANCELED);
        send(SIGUSR1);
        // The losing child already has a signal.
        const auto first = co_await when_any(yield(), set.next());
        EXPECT_EQ(first.index, 0U);
        EXPECT_EQ(co_await timeout(set.next(), 1s), SIGUSR1);
        EXPECT_EQ(co_await (io::nop() && timeout(set.next(), 1ms)), -ETIMEDOUT);
    };
    coil::run(main(waits, signals));
}

TEST_F(SignalSet, OneOfSeveralWaitersGetsTheSignal) {
    const signal_set signals{SIGUSR1};
    auto main = [](const signal_set& set) -> task<> {
        send(SIGUSR1);
        auto [a, b] = co_await when_all(timeout(set.next(), 300ms), timeout(set.next(), 300ms));
        EXPECT_EQ(std::max<int>(a, b), SIGUSR1);
        EXPECT_EQ((std::min<int>(a, b)), -ETIMEDOUT);
    };
    coil::run(main(signals));
}

TEST_F(SignalSet, TheMaskIsRestoredAndUntakenSignalsAreDiscarded) {
    ::sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    const auto before = coil_test::open_descriptors();
    {
        signal_set first{SIGUSR1, SIGUSR2};
        signal_set second = std::move(first);
        EXPECT_TRUE(is_blocked(SIGUSR1));
        send(SIGUSR1); // otherwise it would end the program
    }
    EXPECT_EQ(coil_test::open_descriptors(), before);
    EXPECT_FALSE(is_blocked(SIGUSR1));
    EXPECT_TRUE(is_blocked(SIGUSR2)); // the caller had blocked it
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

TEST_F(SignalSet, InvalidSignalNumbersThrow) {
    EXPECT_THROW(signal_set{-1}, std::system_error);
    EXPECT_THROW((signal_set{SIGUSR1, 100'000}), std::system_error);
    EXPECT_FALSE(is_blocked(SIGUSR1));
}

TEST_F(SignalSet, G5_DestroyedWhileACoroutineWaits) {
    const signal_set signals{SIGUSR1};
    int destroyed = 0;
    auto waits = [](const signal_set& set, coil_test::on_destruction) -> task<> { co_await set; };
    io_context ctx;
    ctx.co_spawn(waits(signals, coil_test::on_destruction(destroyed)));
    ctx.co_spawn([]() -> task<> {
        co_await sleep_for(1ms);
        this_context().stop();
    }());
    ctx.run();
    EXPECT_EQ(destroyed, 1);
    auto next = [](const signal_set& set) -> task<int> { co_return co_await set; };
    send(SIGUSR1); // must not be lost to the destroyed coroutine
    EXPECT_EQ(coil::run(next(signals)), SIGUSR1);
}

TEST_F(SignalSet, G1_OneOfSeveralWaitingSetsGetsTheSignal) {
    const signal_set one{SIGUSR1};
    const signal_set two{SIGUSR1, SIGUSR2};
    auto main = [](const signal_set& first, const signal_set& second) -> task<> {
        auto later = []() -> task<> {
            co_await sleep_for(1ms);
            send(SIGUSR1);
            co_await sleep_for(1ms);
            send(SIGUSR1);
        };
        co_spawn(later());
        auto [a, b] = co_await when_all(first.next(), second.next());
        EXPECT_EQ(a, SIGUSR1);
        EXPECT_EQ(b, SIGUSR1);
        // Both waits complete simultaneously, before either result has been fetched.
        send(SIGUSR1);
        auto [c, d] = co_await when_all(timeout(first.next(), 5ms), timeout(second.next(), 5ms));
        EXPECT_EQ(c + d, SIGUSR1 - ETIMEDOUT);
        auto pending = eager(timeout(first.next(), 5ms));
        send(SIGUSR1);
        EXPECT_EQ(co_await timeout(second.next(), 5ms) + co_await pending, SIGUSR1 - ETIMEDOUT);
    };
    coil::run(main(one, two));
}

TEST_F(SignalSet, G4_UnreceivedSignalsStayPending) {
    const signal_set signals{SIGUSR1};
    auto main = [](const signal_set& set) -> task<> {
        for (int i = 0; i < 3; ++i) {
            send(SIGUSR1);
            {
                auto dropped = eager(set.next());
                while (!dropped.is_complete()) {
                    co_await yield();
                }
            }
            EXPECT_EQ(co_await timeout(io::nop() && set.next(), 1s), SIGUSR1);
            send(SIGUSR1);
            EXPECT_EQ(co_await (set.next() && io::nop()), 0);
            EXPECT_EQ(co_await timeout(set.next(), 1s), SIGUSR1);
        }
        EXPECT_EQ(co_await timeout(set.next(), 1ms), -ETIMEDOUT);
    };
    coil::run(main(signals));
}

TEST_F(SignalSet, OnlyTheLastSetUnblocksAndDiscards) {
    auto take = [](const signal_set& set) -> task<int> {
        co_return co_await timeout(set.next(), 1s);
    };
    auto first = std::make_unique<signal_set>(SIGUSR1);
    auto second = std::make_unique<signal_set>(SIGUSR1);
    send(SIGUSR1);
    first.reset();
    EXPECT_TRUE(is_blocked(SIGUSR1));
    EXPECT_EQ(coil::run(take(*second)), SIGUSR1);
    *second = signal_set{SIGUSR1};
    EXPECT_TRUE(is_blocked(SIGUSR1));
    send(SIGUSR1);
    EXPECT_EQ(coil::run(take(*second)), SIGUSR1);
    *second = signal_set{SIGUSR2};
    EXPECT_FALSE(is_blocked(SIGUSR1));
    EXPECT_TRUE(is_blocked(SIGUSR2));
    second.reset();
    EXPECT_FALSE(is_blocked(SIGUSR2));
}

TEST_F(SignalSet, G1_ADestroyedSetEndsItsWaits) {
    const auto before = coil_test::open_descriptors();
    auto waits = [](const signal_set& set) -> task<int> { co_return co_await set.next(); };
    auto main = [](auto w) -> task<> {
        auto set = std::make_unique<signal_set>(SIGUSR1);
        auto waiting = spawn(w(*set));
        auto in_chain = eager(io::nop() && set->next());
        auto limited = eager(timeout(set->next(), 1h));
        co_await sleep_for(1ms);
        set.reset();
        // The descriptor's number may be reused: a wait that still reads from it would take this.
        const coil_test::pipe_pair p;
        p.put(std::string(128, 'x'));
        EXPECT_EQ(co_await waiting, -ECANCELED);
        EXPECT_EQ(co_await in_chain, -ECANCELED);
        EXPECT_EQ(co_await limited, -ECANCELED);
        std::array<char, 256> buf{};
        EXPECT_EQ(::read(p.in, buf.data(), buf.size()), 128);
        signal_set gone{SIGUSR1};
        const signal_set moved = std::move(gone);
        EXPECT_EQ(co_await gone.next(), -EBADF); // NOLINT(*-use-after-move)
    };
    coil::run(main(waits));
    EXPECT_EQ(coil_test::open_descriptors(), before);
}

TEST_F(SignalSet, G9_DestroyedOnAnotherThreadThanItsWaiters) {
    for (int i = 0; i < 20; ++i) {
        auto set = std::make_unique<signal_set>(SIGUSR1);
        std::atomic<bool> waits = false;
        std::thread other([&set, &waits] {
            auto main = [](const signal_set& s, std::atomic<bool>& w) -> task<int> {
                auto pending = eager(s.next());
                w = true;
                co_return co_await pending;
            };
            EXPECT_EQ(coil::run(main(*set, waits)), -ECANCELED);
        });
        while (!waits) {
            std::this_thread::yield();
        }
        set.reset();
        other.join();
    }
}

} // namespace
