#include "races.hpp"
#include "support/run.hpp"

#include <coil/exec/blocking.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coil;
using namespace std::chrono_literals;

/// Blocks a function halfway until the test releases it.
struct blocking_gate {
    std::binary_semaphore entered{0};
    std::binary_semaphore opened{0};

    void pass() {
        entered.release();
        opened.acquire();
    }
};

/// A pool of one thread, which is busy until release().
class busy_blocking_pool {
public:
    busy_blocking_pool() : pool(1) {
        pool.execute([this] { gate_.pass(); });
        gate_.entered.acquire();
    }
    ~busy_blocking_pool() { release(); }
    void release() {
        if (!std::exchange(released_, true)) {
            gate_.opened.release();
        }
    }

private:
    blocking_gate gate_;
    bool released_ = false;

public:
    blocking_pool pool; // its destructor waits for users of the other members
};

std::error_code blocking_error_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::system_error& e) {
        return e.code();
    } catch (...) {
    }
    return {};
}

TEST(Blocking, G1_RunsElsewhereAndComesBack) {
    const auto here = std::this_thread::get_id();
    coil::run([](std::thread::id home) -> task<> {
        const auto there = co_await blocking([] { return std::this_thread::get_id(); });
        EXPECT_NE(there, home);
        EXPECT_EQ(std::this_thread::get_id(), home);
        bool in_context = true;
        co_await blocking([&] { in_context = detail::current_loop != nullptr; });
        EXPECT_FALSE(in_context);
    }(here));
}

TEST(Blocking, NothingHappensBeforeTheAwait) {
    coil::run([]() -> task<> {
        int calls = 0;
        {
            auto forgotten = blocking([&] { ++calls; });
            (void)forgotten;
        }
        EXPECT_EQ(calls, 0);
        auto later = blocking([&] { ++calls; });
        EXPECT_EQ(calls, 0);
        co_await std::move(later);
        EXPECT_EQ(calls, 1);
    }());
}

struct blocking_without_default {
    explicit blocking_without_default(int n) : value(n) {}
    int value;
};

TEST(Blocking, AnyResult) {
    coil::run([]() -> task<> {
        EXPECT_EQ(co_await blocking([] { return 7; }), 7);
        static_assert(std::is_void_v<decltype(blocking([] {}).operator co_await().await_resume())>);
        int there = 1;
        int& same = co_await blocking([&]() -> int& { return there; });
        EXPECT_EQ(&same, &there);
        const int& constant = co_await blocking([&]() -> const int& { return there; });
        EXPECT_EQ(&constant, &there);
        auto moved = co_await blocking([] { return std::make_unique<int>(3); });
        EXPECT_EQ(*moved, 3);
        auto from_rvalue = co_await blocking([&]() -> std::unique_ptr<int>&& {
            return std::move(moved); // moved out before the await ends
        });
        EXPECT_EQ(*from_rvalue, 3);
        EXPECT_EQ(moved, nullptr);
        EXPECT_EQ((co_await blocking([] { return blocking_without_default(4); })).value, 4);
        const auto constant_text = []() -> const std::string { return "constant"; };
        EXPECT_EQ(co_await blocking(constant_text), "constant");
        auto handle = co_await blocking([] { return std::thread([] {}); });
        handle.join();
    }());
}

int blocking_plain_function() { return 11; }

struct blocking_once_only {
    std::unique_ptr<int> n;
    int operator()() && { return *n; }
};

struct blocking_either_way {
    int operator()() const { return 1; }
    int operator()(inplace_stop_token) const { return 2; }
};

TEST(Blocking, AnyCallable) {
    coil::run([]() -> task<> {
        EXPECT_EQ(co_await blocking(blocking_plain_function), 11);
        EXPECT_EQ(co_await blocking(&blocking_plain_function), 11);
        EXPECT_EQ(co_await blocking(blocking_once_only{std::make_unique<int>(5)}), 5);
        auto owner = [n = std::make_unique<int>(6)]() mutable { return ++*n; };
        EXPECT_EQ(co_await blocking(std::move(owner)), 7);
        const std::function<int()> by_name = [] { return 8; };
        EXPECT_EQ(co_await blocking(by_name), 8);
        EXPECT_EQ(co_await blocking(by_name), 8); // the first call used a copy
        EXPECT_EQ(co_await blocking(blocking_either_way()), 1);
        const inplace_stop_token mine = co_await this_task::stop_token();
        EXPECT_EQ(co_await blocking([](inplace_stop_token given) { return given; }), mine);
    }());
}

TEST(Blocking, G12_ExceptionsOfAnyTypeComeBack) {
    coil::run([]() -> task<> {
        try {
            co_await blocking([] { throw std::runtime_error("there"); });
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_STREQ(e.what(), "there");
        }
        try {
            (void)co_await blocking([]() -> int { throw 42; });
            ADD_FAILURE();
        } catch (int n) {
            EXPECT_EQ(n, 42);
        }
        struct fails_to_move {
            fails_to_move() = default;
            fails_to_move(fails_to_move&&) { throw std::logic_error("moved"); }
        };
        fails_to_move source;
        try {
            (void)co_await blocking([&]() -> fails_to_move&& { return std::move(source); });
            ADD_FAILURE();
        } catch (const std::logic_error& e) {
            EXPECT_STREQ(e.what(), "moved");
        }
    }());
}

/// Records the thread on which it is destroyed.
struct blocking_witness {
    explicit blocking_witness(std::thread::id& d) : destroyed(&d) {}
    blocking_witness(blocking_witness&& other) noexcept
        : destroyed(std::exchange(other.destroyed, nullptr)) {}
    ~blocking_witness() {
        if (destroyed != nullptr) {
            *destroyed = std::this_thread::get_id();
        }
    }
    std::thread::id* destroyed;
};

TEST(Blocking, TheFunctionIsDestroyedHere) {
    const auto here = std::this_thread::get_id();
    std::thread::id destroyed;
    coil::run([](std::thread::id& where) -> task<> {
        co_await blocking([w = blocking_witness(where)] {});
    }(destroyed));
    EXPECT_EQ(destroyed, here);
}

TEST(Blocking, G3_AStopWithdrawsQueuedCalls) {
    busy_blocking_pool busy;
    inplace_stop_source stop;
    bool called = false;
    std::thread::id destroyed;
    std::error_code error;
    io_context ctx;
    ctx.co_spawn(
        [](blocking_pool& pool, bool& was_called, std::thread::id& where,
           std::error_code& e) -> task<> {
            try {
                co_await blocking(
                    pool, [&was_called, w = blocking_witness(where)] { was_called = true; });
            } catch (...) {
                e = blocking_error_of(std::current_exception());
            }
        }(busy.pool, called, destroyed, error),
        stop.get_token());
    ctx.co_spawn([](inplace_stop_source& s, blocking_pool& pool) -> task<> {
        EXPECT_EQ(pool.metrics().queued, 1U);
        s.request_stop();
        EXPECT_EQ(pool.metrics().queued, 0U);
        co_return;
    }(stop, busy.pool));
    ctx.run(); // it ends although the pool is still busy
    EXPECT_FALSE(called);
    EXPECT_EQ(destroyed, std::this_thread::get_id());
    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST(Blocking, G3_AStopFromAnotherThreadWithdrawsQueuedCalls) {
    busy_blocking_pool busy;
    std::stop_source stop;
    std::error_code error;
    io_context ctx;
    ctx.co_spawn(
        [](blocking_pool& pool, std::error_code& e) -> task<> {
            try {
                co_await blocking(pool, [] {});
            } catch (...) {
                e = blocking_error_of(std::current_exception());
            }
        }(busy.pool, error),
        stop.get_token());
    std::thread stopper([&] {
        while (busy.pool.metrics().queued == 0) {
            std::this_thread::yield();
        }
        stop.request_stop();
    });
    ctx.run();
    stopper.join();
    EXPECT_EQ(error, std::errc::operation_canceled);
}

TEST(Blocking, G3_AStopBeforeTheAwait) {
    inplace_stop_source stop;
    stop.request_stop();
    EXPECT_EQ(coil::run([](inplace_stop_token token) -> task<bool> {
                  join_handle<> h =
                      spawn([]() -> task<> { co_await blocking([] { ADD_FAILURE(); }); }(), token);
                  try {
                      co_await h;
                  } catch (const std::system_error& e) {
                      EXPECT_EQ(e.code(), std::errc::operation_canceled);
                      EXPECT_STREQ(std::string(e.what()).substr(0, 43).c_str(),
                                   "coil: blocking: the task was asked to stop:");
                      co_return true;
                  }
                  co_return false;
              }(stop.get_token())),
              true);
}

TEST(Blocking, G3_ARunningCallReturnsItsRealResult) {
    blocking_gate gate;
    inplace_stop_source stop;
    io_context ctx;
    join_handle<int> h = ctx.spawn(
        [](blocking_gate& g) -> task<int> {
            co_return co_await blocking([&] {
                g.pass();
                return 9;
            });
        }(gate),
        stop.get_token());
    std::thread stopper([&] {
        gate.entered.acquire();
        stop.request_stop();
        gate.opened.release();
    });
    ctx.run();
    stopper.join();
    EXPECT_EQ(h.get(), 9);
}

TEST(Blocking, G3_AFunctionMaySeeTheStop) {
    blocking_gate gate;
    inplace_stop_source stop;
    io_context ctx;
    join_handle<int> h = ctx.spawn(
        [](blocking_gate& g) -> task<int> {
            co_return co_await blocking([&](inplace_stop_token token) {
                g.entered.release();
                int seen = 0;
                while (!token.stop_requested()) {
                    std::this_thread::yield();
                    ++seen;
                }
                return seen >= 0 ? 1 : 0;
            });
        }(gate),
        stop.get_token());
    std::thread stopper([&] {
        gate.entered.acquire();
        stop.request_stop();
    });
    ctx.run();
    stopper.join();
    EXPECT_EQ(h.get(), 1);
}

task<> blocking_forever(blocking_pool& pool, bool& called, int& destroyed) {
    const coil_test::on_destruction local(destroyed);
    co_await blocking(pool, [&] { called = true; });
    ADD_FAILURE();
}

TEST(Blocking, G5_AShutdownWithdrawsQueuedCalls) {
    busy_blocking_pool busy;
    bool called = false;
    int destroyed = 0;
    {
        io_context ctx;
        ctx.co_spawn(blocking_forever(busy.pool, called, destroyed));
        ctx.post([&] { ctx.stop(); });
        ctx.run();
        EXPECT_EQ(destroyed, 1);
        EXPECT_EQ(busy.pool.metrics().queued, 0U);
    }
    busy.release();
    EXPECT_FALSE(called);
}

TEST(Blocking, G5_G2_AShutdownWaitsForRunningCalls) {
    blocking_gate gate;
    int destroyed = 0;
    std::atomic<bool> ended = false;
    io_context ctx;
    ctx.co_spawn([](blocking_gate& g, std::atomic<bool>& end, int& d) -> task<> {
        const coil_test::on_destruction local(d);
        co_await blocking([&] {
            g.pass();
            EXPECT_EQ(d, 0); // the coroutine's locals still exist
            end = true;
        });
        ADD_FAILURE();
    }(gate, ended, destroyed));
    std::thread other([&] {
        gate.entered.acquire();
        ctx.stop();
        std::this_thread::sleep_for(5ms); // by then the shutdown has started, most of the time
        EXPECT_EQ(destroyed, 0);
        gate.opened.release();
    });
    ctx.run();
    EXPECT_TRUE(ended);
    EXPECT_EQ(destroyed, 1);
    other.join();
}

/// The function has returned; the coroutine may be resumed or destroyed.
TEST(Blocking, G5_G1_AShutdownWhenTheResultIsThere) {
    for (int i = 0; i < coil_test::rounds(50, 2000); ++i) {
        int destroyed = 0;
        int after = 0;
        std::atomic<bool> ended = false;
        io_context ctx;
        ctx.co_spawn([](std::atomic<bool>& end, int& d, int& a) -> task<> {
            const coil_test::on_destruction local(d);
            co_await blocking([&] { end = true; });
            ++a;
        }(ended, destroyed, after));
        ctx.co_spawn([](std::atomic<bool>& end) -> task<> {
            while (!end) {
                co_await yield();
            }
            this_context().stop();
        }(ended));
        ctx.run();
        EXPECT_EQ(destroyed, 1);
        EXPECT_LE(after, 1);
    }
}

coil_test::manual blocking_by_hand(blocking_pool& pool, std::function<void()> f, int& after) {
    co_await blocking(pool, std::move(f));
    ++after;
}

TEST(Blocking, ItsFrameMayBeDestroyedExplicitly) {
    int after = 0;
    {
        busy_blocking_pool busy;
        io_context ctx;
        ctx.post([&] {
            auto queued = blocking_by_hand(busy.pool, [] { ADD_FAILURE(); }, after);
            queued.start();
            EXPECT_EQ(busy.pool.metrics().queued, 1U);
            queued.destroy();
            EXPECT_EQ(busy.pool.metrics().queued, 0U);
        });
        ctx.run();
    }
    blocking_pool pool(1);
    io_context ctx;
    ctx.post([&] {
        blocking_gate gate;
        auto begun = blocking_by_hand(pool, [&] { gate.pass(); }, after);
        begun.start();
        gate.entered.acquire();
        std::thread opener([&] { gate.opened.release(); });
        begun.destroy();
        opener.join();
        auto over = blocking_by_hand(pool, [&] { gate.pass(); }, after);
        over.start();
        gate.entered.acquire();
        gate.opened.release(); // when the coroutine has suspended
        while (pool.metrics().idle_threads == 0) {
            std::this_thread::yield();
        }
        over.destroy(); // its notification is in the inbox
    });
    ctx.run();
    EXPECT_EQ(after, 0);
}

TEST(Blocking, WithoutAContextItResumesOnThePoolsThread) {
    blocking_gate gate;
    blocking_pool pool(1);
    std::thread::id function;
    std::thread::id after;
    auto coroutine = [](blocking_pool& p, blocking_gate& g, std::thread::id& f,
                        std::thread::id& a) -> coil_test::manual {
        f = co_await blocking(p, [&] {
            g.pass();
            return std::this_thread::get_id();
        });
        a = std::this_thread::get_id();
    }(pool, gate, function, after);
    coroutine.start();
    gate.entered.acquire();
    gate.opened.release(); // when the coroutine has suspended
    while (pool.metrics().idle_threads == 0) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(coroutine.done());
    EXPECT_EQ(after, function);
    EXPECT_NE(after, std::this_thread::get_id());
}

TEST(Blocking, WithoutAContextTheFrameMayBeDestroyed) {
    int after = 0;
    {
        busy_blocking_pool busy;
        auto queued = blocking_by_hand(busy.pool, [] { ADD_FAILURE(); }, after);
        queued.start();
        queued.destroy();
        EXPECT_EQ(busy.pool.metrics().queued, 0U);
    }
    blocking_gate gate;
    auto begun = blocking_by_hand(default_blocking_pool(), [&] { gate.pass(); }, after);
    begun.start();
    gate.entered.acquire();
    std::thread opener([&] {
        coil_test::wait_until_asleep(::getpid()); // in destroy()
        gate.opened.release();
    });
    begun.destroy();
    opener.join();
    EXPECT_EQ(after, 0);
}

TEST(Blocking, InCombinations) {
    coil::run([]() -> task<> {
        auto [one, two] = co_await when_all(blocking([] { return 1; }),
                                            blocking([] { return std::make_unique<int>(2); }));
        EXPECT_EQ(one, 1);
        EXPECT_EQ(*two, 2);

        busy_blocking_pool busy; // the loser is withdrawn from its queue
        const auto first =
            co_await when_any(blocking([] { return 3; }), blocking(busy.pool, [] { return 4; }));
        EXPECT_EQ(first.index, 0U);
        EXPECT_EQ(busy.pool.metrics().queued, 0U);

        try { // the sibling of a child that fails
            co_await when_all(blocking([] { throw 5; }), blocking(busy.pool, [] {}));
            ADD_FAILURE();
        } catch (int n) {
            EXPECT_EQ(n, 5);
        }
        EXPECT_EQ(busy.pool.metrics().queued, 0U);

        const auto late = [](blocking_pool& pool) -> task<> { co_await blocking(pool, [] {}); };
        try {
            co_await timeout(late(busy.pool), 1ms);
            ADD_FAILURE();
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::timed_out);
        }
    }());
}

/// Stops race with results and shutdowns.
TEST(Blocking, G1_G3_StopsThatRace) {
    coil_test::racing_stops race(coil_test::rounds(coil_test::sanitized ? 200 : 1000, 50'000));
    blocking_pool pool(3);
    for (int round = 0; round < 4; ++round) {
        race.round([&pool](auto f) { return blocking(pool, f); });
    }
    race.check();
}

/// The pool's notification is in the inbox, followed by a stop from another thread, when the
/// waiting coroutine is destroyed: it is made ready at most once, and not after its destruction.
TEST(Blocking, G1_G2_DestroyedWithItsResultAndAStopOnTheirWay) {
    std::binary_semaphore begun(0);
    std::binary_semaphore may_end(0);
    blocking_pool pool(1);
    auto waits = [](blocking_pool& p, std::binary_semaphore& b,
                    std::binary_semaphore& e) -> task<> {
        co_await blocking(p, [&] {
            b.release();
            e.acquire();
        });
    };
    auto ends = [](task<> work, std::binary_semaphore& b, std::binary_semaphore& e,
                   blocking_pool& p) -> task<> {
        {
            scope s;
            s.spawn(std::move(work));
            co_await sleep_for(1ms); // until the task waits
            b.acquire();
            e.release();
            while (p.metrics().idle_threads == 0) { // until the pool has posted its notification
                std::this_thread::yield();
            }
            std::thread([&s] { s.cancel(); }).join();
        }
        for (int i = 0; i < 5; ++i) {
            co_await yield();
        }
    };
    coil::run(ends(waits(pool, begun, may_end), begun, may_end, pool));
}

} // namespace
