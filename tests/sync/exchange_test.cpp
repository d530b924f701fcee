// Semaphores, shared_mutex, oneshot, broadcast.

#include "sync/support.hpp"

#include <atomic>
#include <memory>
#include <optional>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Exchange : public ::testing::Test {};

TEST_F(Exchange, ASemaphoreLimitsConcurrency) {
    counting_semaphore<> slots(3);
    std::atomic<int> inside = 0;
    std::atomic<int> most = 0;
    auto works = [](counting_semaphore<>& s, std::atomic<int>& in, std::atomic<int>& m) -> task<> {
        co_await s.acquire();
        const int now = ++in;
        for (int seen = m; seen < now && !m.compare_exchange_weak(seen, now);) {
        }
        co_await sleep_for(200us);
        --in;
        s.release();
    };
    io_context one;
    io_context two;
    for (int i = 0; i < 20; ++i) {
        one.co_spawn(works(slots, inside, most));
        two.co_spawn(works(slots, inside, most));
    }
    two.start();
    one.run();
    two.join();
    EXPECT_EQ(most, 3);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(slots.try_acquire());
    }
    EXPECT_FALSE(slots.try_acquire());
}

TEST_F(Exchange, SeveralPermitsAtOnce) {
    counting_semaphore<> s(0);
    EXPECT_FALSE(s.try_acquire());
    int passed = 0;
    coil::run([](counting_semaphore<>& it, int& n) -> task<> {
        std::vector<join_handle<>> all;
        for (int i = 0; i < 5; ++i) {
            all.push_back(spawn([](counting_semaphore<>& mine, int& count) -> task<> {
                co_await mine.acquire();
                ++count;
            }(it, n)));
        }
        co_await yield();
        it.release(3);
        EXPECT_FALSE(it.try_acquire());
        co_await yield();
        co_await yield();
        EXPECT_EQ(n, 3);
        it.release(4);
        for (auto& h : all) {
            co_await h;
        }
    }(s, passed));
    EXPECT_EQ(passed, 5);
    EXPECT_TRUE(s.try_acquire());
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
    binary_semaphore b(1);
    EXPECT_TRUE(b.try_acquire());
    EXPECT_FALSE(b.try_acquire());
}

TEST_F(Exchange, ReadersShareAndWritersDoNot) {
    shared_mutex m;
    std::atomic<int> readers = 0;
    std::atomic<int> writers = 0;
    std::atomic<int> most = 0;
    long value = 0; // protected by the mutex
    auto reads = [](shared_mutex& it, std::atomic<int>& r, std::atomic<int>& w,
                    std::atomic<int>& most_readers, long& v) -> task<> {
        for (int i = 0; i < 100; ++i) {
            const auto guard = co_await it.shared_lock_guard();
            const int now = ++r;
            for (int seen = most_readers;
                 seen < now && !most_readers.compare_exchange_weak(seen, now);) {
            }
            EXPECT_EQ(w, 0);
            const long before = v;
            co_await yield();
            EXPECT_EQ(v, before);
            --r;
        }
    };
    auto writes = [](shared_mutex& it, std::atomic<int>& r, std::atomic<int>& w,
                     long& v) -> task<> {
        for (int i = 0; i < 100; ++i) {
            const auto guard = co_await it.lock_guard();
            EXPECT_EQ(++w, 1);
            EXPECT_EQ(r, 0);
            ++v;
            co_await yield();
            --w;
        }
    };
    io_context one;
    io_context two;
    for (io_context* ctx : {&one, &two}) {
        for (int i = 0; i < 4; ++i) {
            ctx->co_spawn(reads(m, readers, writers, most, value));
        }
        ctx->co_spawn(writes(m, readers, writers, value));
    }
    two.start();
    one.run();
    two.join();
    EXPECT_EQ(value, 200);
    EXPECT_GT(most, 1);
}

TEST_F(Exchange, G7_ReadersDoNotOvertakeAWaitingWriter) {
    shared_mutex m;
    coil::run([](shared_mutex& it) -> task<> {
        co_await it.lock_shared();
        EXPECT_TRUE(it.try_lock_shared());
        EXPECT_FALSE(it.try_lock());
        std::vector<int> order;
        auto writer = spawn([](shared_mutex& mine, std::vector<int>& o) -> task<> {
            co_await mine.lock();
            o.push_back(1);
            mine.unlock();
        }(it, order));
        co_await yield();
        EXPECT_FALSE(it.try_lock_shared());
        auto reader = spawn([](shared_mutex& mine, std::vector<int>& o) -> task<> {
            co_await mine.lock_shared();
            o.push_back(2);
            mine.unlock_shared();
        }(it, order));
        co_await yield();
        it.unlock_shared();
        co_await yield();
        EXPECT_TRUE(order.empty());
        it.unlock_shared();
        co_await writer;
        co_await reader;
        EXPECT_EQ(order, (std::vector<int>{1, 2}));
        // A cancelled writer lets the readers behind it proceed.
        co_await it.lock_shared();
        auto gives_up = spawn([](shared_mutex& mine) -> task<> { co_await mine.lock(); }(it));
        co_await yield();
        auto behind = spawn([](shared_mutex& mine) -> task<> {
            co_await mine.lock_shared();
            mine.unlock_shared();
        }(it));
        co_await yield();
        gives_up.cancel();
        co_await behind;
        bool cancelled = false;
        try {
            co_await gives_up;
        } catch (const std::system_error& e) {
            cancelled = e.code() == std::errc::operation_canceled;
        }
        EXPECT_TRUE(cancelled);
        it.unlock_shared();
        EXPECT_TRUE(it.try_lock());
        it.unlock();
    }(m));
}

TEST_F(Exchange, AOneshotTransfersOneValue) {
    io_context other;
    other.co_spawn([]() -> task<> { co_await sleep_for(24h); }());
    other.start();
    coil::run([](io_context& there) -> task<> {
        for (int i = 0; i < 200; ++i) {
            oneshot<int> answer;
            there.co_spawn([](oneshot<int>& out, int n) -> task<> {
                EXPECT_TRUE(out.send(n));
                co_return;
            }(answer, i));
            EXPECT_EQ(co_await answer.recv(), i);
        }
    }(other));
    other.stop();
    other.join();
    coil::run([]() -> task<> {
        oneshot<int> o;
        EXPECT_FALSE(o.try_recv());
        EXPECT_TRUE(o.send(1));
        EXPECT_FALSE(o.send(2));
        o.close();
        EXPECT_EQ(o.try_recv(), 1);
        EXPECT_EQ(co_await o.recv(), std::nullopt);
        oneshot<int> closed;
        closed.close();
        EXPECT_FALSE(closed.send(1));
        EXPECT_EQ(co_await closed.recv(), std::nullopt);
    }());
}

TEST_F(Exchange, ABroadcastReachesEveryReceiver) {
    broadcast<int> b(1000);
    std::vector<int> got[4];
    auto receives = [](broadcast<int>::receiver mine, std::vector<int>& out) -> task<> {
        while (auto n = co_await mine.recv()) {
            out.push_back(*n);
        }
        EXPECT_EQ(mine.lagged(), 0U);
    };
    io_context one;
    io_context two;
    for (int i = 0; i < 4; ++i) {
        (i % 2 == 0 ? one : two).co_spawn(receives(b.subscribe(), got[i]));
    }
    one.co_spawn([](broadcast<int>& it) -> task<> {
        for (int i = 0; i < 1000; ++i) {
            EXPECT_TRUE(it.send(i));
            if (i % 10 == 0) {
                co_await yield();
            }
        }
        it.close();
        EXPECT_FALSE(it.send(1));
    }(b));
    two.start();
    one.run();
    two.join();
    for (auto& some : got) {
        ASSERT_EQ(some.size(), 1000U);
        for (int i = 0; i < 1000; ++i) {
            EXPECT_EQ(some[static_cast<std::size_t>(i)], i);
        }
    }
}

TEST_F(Exchange, ASlowBroadcastReceiverCountsLaggedElements) {
    broadcast<int> b(4);
    coil::run([](broadcast<int>& it) -> task<> {
        auto mine = it.subscribe();
        EXPECT_FALSE(mine.try_recv());
        for (int i = 0; i < 10; ++i) {
            it.send(i);
        }
        EXPECT_EQ(co_await mine.recv(), 6);
        EXPECT_EQ(mine.lagged(), 6U);
        EXPECT_EQ(co_await mine.recv(), 7);
        auto copy = mine;
        EXPECT_EQ(mine.try_recv(), 8);
        EXPECT_EQ(copy.try_recv(), 8);
        auto late = it.subscribe();
        it.close();
        EXPECT_EQ(co_await mine.recv(), 9);
        EXPECT_EQ(co_await mine.recv(), std::nullopt);
        EXPECT_EQ(co_await late.recv(), std::nullopt);
    }(b));
}

TEST_F(Exchange, ReceiversShareAnElementWithoutCopies) {
    struct message { // cannot be copied
        explicit message(int n) : number(n) {}
        message(message&&) noexcept = default;
        int number;
    };
    broadcast<message> b(4);
    coil::run([](broadcast<message>& it) -> task<> {
        auto one = it.subscribe();
        auto two = it.subscribe();
        EXPECT_EQ(one.try_recv_shared(), nullptr);
        EXPECT_TRUE(it.send(message(1)));
        const auto shared = std::make_shared<const message>(2);
        EXPECT_TRUE(it.send_shared(shared));
        const auto first = co_await one.recv_shared();
        EXPECT_EQ(first->number, 1);
        EXPECT_EQ(co_await two.recv_shared(), first);
        EXPECT_EQ(co_await one.recv_shared(), shared);
        EXPECT_EQ(two.try_recv_shared(), shared);
        auto waits = [](broadcast<message>::receiver& r) -> task<> {
            EXPECT_EQ((co_await r.recv_shared())->number, 3);
            EXPECT_EQ(co_await r.recv_shared(), nullptr);
        };
        auto waiting = spawn(waits(one));
        co_await yield();
        it.send(message(3));
        it.close();
        co_await waiting;
        EXPECT_FALSE(it.send_shared(shared));
    }(b));
    EXPECT_DEATH(b.send_shared(nullptr), "a broadcast was sent a null pointer");
}

} // namespace
