// Every primitive, cancelled or destroyed at every point of its wait, by its own context and while
// another thread wakes it. The wait ends once, and what it waited for is neither lost nor
// duplicated.

#include "support/random.hpp"
#include "sync/scenarios.hpp"

#include <atomic>
#include <functional>
#include <iostream>
#include <thread>

using namespace coil;
using namespace std::chrono_literals;
using sync_test::waits;
using sync_test::waits_to_be_destroyed;

namespace {

template <class S>
class Cancelled : public ::testing::Test {};
TYPED_TEST_SUITE(Cancelled, sync_test::scenarios);

/// A thread that calls a function on request, as soon as it can.
class helper {
public:
    helper()
        : thread_([this] {
              for (int round = 1;; ++round) {
                  while (go_.load(std::memory_order_acquire) != round) {
                      std::this_thread::yield();
                  }
                  if (!what_) {
                      return;
                  }
                  what_();
                  done_.store(round, std::memory_order_release);
              }
          }) {}
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;
    ~helper() {
        start(nullptr);
        thread_.join();
    }
    void start(std::function<void()> what) {
        what_ = std::move(what);
        go_.store(++round_, std::memory_order_release);
    }
    void wait() {
        while (done_.load(std::memory_order_acquire) != round_) {
            std::this_thread::yield();
        }
    }

private:
    std::function<void()> what_;
    int round_ = 0;
    std::atomic<int> go_{0};
    std::atomic<int> done_{0};
    std::thread thread_;
};

void spin(unsigned steps) {
    for (std::atomic<unsigned> n{0}; n.load(std::memory_order_relaxed) < steps;) {
        n.fetch_add(1, std::memory_order_relaxed);
    }
}

std::uint64_t seed_of_this_run() {
    static const std::uint64_t seed = [] {
        const char* given = std::getenv("COIL_PROPERTY_SEED");
        const std::uint64_t chosen =
            given != nullptr ? std::strtoull(given, nullptr, 10)
                             : static_cast<std::uint64_t>(
                                   std::chrono::steady_clock::now().time_since_epoch().count());
        std::cout << "COIL_PROPERTY_SEED=" << chosen << '\n';
        return chosen;
    }();
    return seed;
}

task<> turns(int n) {
    for (int i = 0; i < n; ++i) {
        co_await yield();
    }
}

/// The points of a wait that a single thread can reach deterministically.
enum class point { never, before, before_a_free_one, queued, woken, cancelled_first };

template <class S>
task<> on_one_context(S& s, point when) {
    s.prepare();
    auto h = spawn(waits(s));
    bool woken = false;
    if (when == point::before_a_free_one) { // without the cancellation, it would not wait
        s.wake();
        woken = true;
    }
    if (when == point::before || when == point::before_a_free_one) {
        h.cancel();
    }
    co_await turns(2);
    switch (when) {
    case point::before:
    case point::before_a_free_one:
    case point::queued:
        h.cancel();
        break;
    case point::never:
        s.wake();
        woken = true;
        break;
    case point::woken: // it is in the ready queue
        s.wake();
        woken = true;
        h.cancel();
        break;
    case point::cancelled_first:
        h.cancel();
        s.wake();
        woken = true;
        break;
    }
    const bool got = co_await h;
    if (when == point::never) {
        EXPECT_TRUE(got);
    } else if (when != point::woken) {
        EXPECT_FALSE(got);
    }
    if (!woken) {
        s.wake();
    }
    s.check(got);
}

TYPED_TEST(Cancelled, G3_AtEachPointByItsOwnContext) {
    for (const point when : {point::never, point::before, point::before_a_free_one, point::queued,
                             point::woken, point::cancelled_first}) {
        SCOPED_TRACE(static_cast<int>(when));
        TypeParam s;
        for (int i = 0; i < 3; ++i) {
            coil::run(on_one_context(s, when));
        }
    }
}

TYPED_TEST(Cancelled, G1_WhileAnotherThreadWakesIt) {
    coil_test::random_source random(seed_of_this_run());
    TypeParam s;
    helper waker;
    io_context ctx;
    ctx.co_spawn([]() -> task<> { co_await sleep_for(24h); }());
    ctx.start();
    const int rounds = coil_test::rounds(coil_test::sanitized ? 150 : 500, 20'000);
    int won = 0;
    for (int i = 0; i < rounds; ++i) {
        s.prepare();
        const unsigned before_wake = random.below(2000);
        const unsigned before_cancel = random.below(2000);
        auto h = ctx.spawn(waits(s));
        spin(random.below(3000));
        waker.start([&] {
            spin(before_wake);
            s.wake();
        });
        spin(before_cancel);
        h.cancel();
        const bool got = h.get();
        won += got ? 1 : 0;
        waker.wait();
        s.check(got);
        if (::testing::Test::HasFailure()) {
            break;
        }
    }
    ::testing::Test::RecordProperty("won", won);
    ctx.stop();
    ctx.join();
}

TYPED_TEST(Cancelled, G5_DestroyedWhileAnotherThreadWakesIt) {
    coil_test::random_source random(seed_of_this_run() + 1);
    TypeParam s;
    helper waker;
    const int rounds = coil_test::rounds(coil_test::sanitized ? 150 : 500, 20'000);
    coil::run([](TypeParam& it, helper& other, coil_test::random_source& r, int n) -> task<> {
        for (int i = 0; i < n && !::testing::Test::HasFailure(); ++i) {
            it.prepare();
            bool got = false;
            const unsigned before_wake = r.below(2000);
            {
                const auto frame = waits_to_be_destroyed(it, got);
                frame.start();
                other.start([&] {
                    spin(before_wake);
                    it.wake();
                });
                if (r.one_in(4)) {
                    co_await yield();
                }
                spin(r.below(2000));
            }
            other.wait();
            it.check(got);
        }
    }(s, waker, random, rounds));
}

TYPED_TEST(Cancelled, G5_DestroyedAtEachPointByItsOwnContext) {
    for (const bool woken : {false, true}) {
        TypeParam s;
        coil::run([](TypeParam& it, bool wakes) -> task<> {
            for (int i = 0; i < 3; ++i) {
                it.prepare();
                bool got = false;
                {
                    const auto frame = waits_to_be_destroyed(it, got);
                    frame.start();
                    co_await yield();
                    if (wakes) {
                        it.wake();
                    }
                }
                if (!wakes) {
                    it.wake();
                }
                EXPECT_FALSE(got);
                it.check(false);
                co_await yield();
            }
        }(s, woken));
    }
}

TYPED_TEST(Cancelled, G5_StoppedWithItsContext) {
    for (const bool woken : {false, true}) {
        TypeParam s;
        s.prepare();
        bool got = false; // set if the task resumes before it sees the stop
        {
            io_context ctx;
            ctx.co_spawn(
                [](TypeParam& it, bool& out) -> task<> { out = co_await waits(it); }(s, got));
            ctx.co_spawn([](TypeParam& it, io_context& c, bool wakes) -> task<> {
                if (wakes) {
                    it.wake();
                }
                c.stop();
                co_return;
            }(s, ctx, woken));
            ctx.run();
        }
        if (!woken) {
            s.wake();
        }
        s.check(got);
    }
}

/// Many coroutines on two contexts, cancelled at random: at most one owns the mutex at any time.
TEST(CancelledMutex, G9_ManyWaitersOnTwoContextsAreCancelledAtRandom) {
    coil_test::random_source random(seed_of_this_run() + 2);
    mutex m;
    long inside = 0; // protected by the mutex
    std::atomic<int> locked = 0;
    auto one = [](mutex& it, long& in, std::atomic<int>& count, int times) -> task<> {
        for (int i = 0; i < times; ++i) {
            const auto guard = co_await it.lock_guard();
            EXPECT_EQ(++in, 1);
            if (i % 3 == 0) {
                co_await yield();
            }
            --in;
            ++count;
        }
    };
    io_context contexts[2];
    for (auto& ctx : contexts) {
        ctx.co_spawn([]() -> task<> { co_await sleep_for(24h); }());
        ctx.start();
    }
    const int rounds = coil_test::rounds(20, 1000);
    for (int r = 0; r < rounds; ++r) {
        std::vector<join_handle<>> all;
        for (unsigned i = 0; i < 16; ++i) {
            all.push_back(contexts[i % 2].spawn(one(m, inside, locked, 20)));
        }
        for (auto& h : all) {
            if (random.one_in(2)) {
                spin(random.below(5000));
                h.cancel();
            }
        }
        for (auto& h : all) {
            try {
                h.get();
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
            }
        }
        EXPECT_TRUE(m.try_lock());
        m.unlock();
    }
    for (auto& ctx : contexts) {
        ctx.stop();
        ctx.join();
    }
    EXPECT_GT(locked, 0);
}

} // namespace
