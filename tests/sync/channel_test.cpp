// coil::channel: elements arrive once and in order; closing works as in Go.

#include "sync/support.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Channel : public ::testing::Test {};

template <class C>
task<> sends(C& ch, int first, int count, bool closes) {
    for (int i = 0; i < count; ++i) {
        co_await ch.send(first + i);
    }
    if (closes) {
        ch.close();
    }
}
template <class C>
task<> receives(C& ch, std::vector<int>& got) {
    while (auto n = co_await ch.recv()) {
        got.push_back(*n);
    }
}

std::vector<int> upto(int n) {
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

void one_to_one(channel<int>& ch, int count) {
    std::vector<int> got;
    io_context ctx;
    ctx.co_spawn(receives(ch, got));
    ctx.co_spawn(sends(ch, 0, count, true));
    ctx.run();
    EXPECT_EQ(got, upto(count));
}
void across(channel<int>& ch, int count) {
    std::vector<int> got;
    io_context here;
    io_context there;
    here.co_spawn(receives(ch, got));
    there.co_spawn(sends(ch, 0, count, true));
    there.start();
    here.run();
    there.join();
    EXPECT_EQ(got, upto(count));
}

TEST_F(Channel, OneToOne) {
    for (const std::size_t room : {0, 1, 2, 3, 16, 1000}) {
        SCOPED_TRACE(room);
        channel<int> ch{room};
        one_to_one(ch, 5000);
    }
    channel<int> all{unbounded};
    one_to_one(all, 5000);
}

TEST_F(Channel, G1_OneToOneAcrossContexts) {
    const int count = coil_test::rounds(5000, 200'000);
    for (const std::size_t room : {0, 1, 2, 7, 64}) {
        SCOPED_TRACE(room);
        channel<int> ch{room};
        across(ch, count);
    }
    channel<int> all{unbounded};
    across(all, count);
}

/// An element whose second move from the original object blocks.
struct slow_move {
    struct gate {
        std::atomic<int> moves{0};
        std::atomic<bool> reached{false};
        std::atomic<bool> open{false};
    };
    explicit slow_move(int n, gate* g = nullptr) : number(n), gate_(g) {}
    slow_move(slow_move&& other) noexcept : number(other.number), gate_(other.gate_) {
        if (gate_ != nullptr && gate_->moves.fetch_add(1) == 1) {
            gate_->reached = true;
            gate_->reached.notify_all();
            gate_->open.wait(false);
        }
    }
    int number;

private:
    gate* gate_;
};

/// Two receivers wait. The first element is moved with the lock held; meanwhile the sender of the
/// second one arrives and can only queue up.
void sent_while_locked(channel<slow_move>& ch) {
    slow_move::gate gate;
    std::atomic<bool> both_wait{false};
    std::vector<int> got;
    io_context receivers;
    for (int i = 0; i < 2; ++i) {
        receivers.co_spawn([](channel<slow_move>& in, std::vector<int>& out) -> task<> {
            auto element = co_await in.recv();
            out.push_back(element ? element->number : 0);
        }(ch, got));
    }
    receivers.co_spawn([](std::atomic<bool>& flag) -> task<> {
        flag = true;
        flag.notify_all();
        co_return;
    }(both_wait));
    receivers.start();
    both_wait.wait(false);

    std::thread first([&] { EXPECT_TRUE(ch.try_send(slow_move(1, &gate))); });
    gate.reached.wait(false);
    io_context sender;
    sender.co_spawn([](channel<slow_move>& out) -> task<> { co_await out.send(slow_move(2)); }(ch));
    sender.co_spawn([](slow_move::gate& g) -> task<> { // runs when the sender waits
        g.open = true;
        g.open.notify_all();
        co_return;
    }(gate));
    sender.run();
    first.join();
    receivers.join();
    EXPECT_EQ(got, (std::vector<int>{1, 2}));
}

TEST_F(Channel, G1_SentWhileAnotherThreadHoldsTheLock) {
    for (const std::size_t room : {0, 1, 2}) {
        SCOPED_TRACE(room);
        channel<slow_move> ch{room};
        sent_while_locked(ch);
    }
    channel<slow_move> all{unbounded};
    sent_while_locked(all);
}

TEST_F(Channel, G1_ManyToManyAcrossContexts) {
    const int each = coil_test::rounds(500, 20'000);
    for (const std::size_t room : {0, 1, 3, 64}) {
        SCOPED_TRACE(room);
        channel<int> ch{room};
        wait_group senders;
        std::vector<int> got[4];
        io_context one;
        io_context two;
        for (int i = 0; i < 4; ++i) {
            io_context& ctx = i % 2 == 0 ? one : two;
            senders.add();
            ctx.co_spawn(receives(ch, got[i]));
            ctx.co_spawn([](channel<int>& out, int first, int n, wait_group& g) -> task<> {
                co_await sends(out, first, n, false);
                g.done();
            }(ch, i * each, each, senders));
        }
        one.co_spawn([](channel<int>& out, wait_group& g) -> task<> {
            co_await g.wait();
            out.close();
        }(ch, senders));
        two.start();
        one.run();
        two.join();
        std::vector<int> all;
        for (auto& some : got) {
            // The elements of each sender arrive in the order in which it sent them.
            for (int s = 0; s < 4; ++s) {
                int last = -1;
                for (const int n : some) {
                    if (n / each == s) {
                        EXPECT_GT(n, last);
                        last = n;
                    }
                }
            }
            all.insert(all.end(), some.begin(), some.end());
        }
        std::sort(all.begin(), all.end());
        EXPECT_EQ(all, upto(4 * each));
    }
}

TEST_F(Channel, TrySendAndTryRecv) {
    channel<int> ch{2};
    EXPECT_EQ(ch.capacity(), 2U);
    EXPECT_FALSE(ch.try_recv());
    EXPECT_TRUE(ch.try_send(1));
    EXPECT_TRUE(ch.try_send(2));
    EXPECT_FALSE(ch.try_send(3));
    EXPECT_EQ(ch.try_recv(), 1);
    EXPECT_TRUE(ch.try_send(4));
    EXPECT_EQ(ch.try_recv(), 2);
    EXPECT_EQ(ch.try_recv(), 4);
    EXPECT_FALSE(ch.try_recv());

    channel<int> none;
    EXPECT_FALSE(none.try_send(1));
    EXPECT_FALSE(none.try_recv());

    channel<int> any{unbounded};
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(any.try_send(i));
    }
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(any.try_recv(), i);
    }
    EXPECT_FALSE(any.try_recv());
}

TEST_F(Channel, ATrySendThatFailsKeepsTheValue) {
    channel<std::unique_ptr<int>> ch;
    auto value = std::make_unique<int>(7);
    EXPECT_FALSE(ch.try_send(std::move(value)));
    ASSERT_NE(value, nullptr); // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(*value, 7);      // NOLINT(bugprone-use-after-move)
}

TEST_F(Channel, TrySendPassesTheValueToAWaiter) {
    channel<int> ch;
    std::optional<int> got;
    coil::run([](channel<int>& c, std::optional<int>& g) -> task<> {
        auto h = spawn([](channel<int>& in, std::optional<int>& out) -> task<> {
            out = co_await in.recv();
        }(c, g));
        co_await yield();
        EXPECT_TRUE(c.try_send(5));
        EXPECT_FALSE(c.try_send(6));
        co_await h;
    }(ch, got));
    EXPECT_EQ(got, 5);
}

TEST_F(Channel, ElementsAreReceivedAfterClose) {
    for (const bool bounded : {true, false}) {
        auto test = [](channel<int>& c) -> task<> {
            co_await c.send(1);
            co_await c.send(2);
            c.close();
            c.close();
            EXPECT_TRUE(c.is_closed());
            EXPECT_FALSE(c.try_send(3));
            EXPECT_EQ(co_await c.recv(), 1);
            EXPECT_EQ(co_await c.recv(), 2);
            EXPECT_EQ(co_await c.recv(), std::nullopt);
            EXPECT_EQ(co_await c.recv(), std::nullopt);
            EXPECT_FALSE(c.try_recv());
            bool refused = false;
            try {
                co_await c.send(4);
            } catch (const std::system_error& e) {
                refused = e.code() == std::errc::broken_pipe;
            }
            EXPECT_TRUE(refused);
        };
        if (bounded) {
            channel<int> ch{4};
            coil::run(test(ch));
        } else {
            channel<int> ch{unbounded};
            coil::run(test(ch));
        }
    }
}

TEST_F(Channel, CloseWakesWaiters) {
    channel<int> ch;
    coil::run([](channel<int>& c) -> task<> {
        std::vector<join_handle<std::optional<int>>> all;
        for (int i = 0; i < 3; ++i) {
            all.push_back(spawn([](channel<int>& in) -> task<std::optional<int>> {
                co_return co_await in.recv();
            }(c)));
        }
        co_await yield();
        c.close();
        for (auto& h : all) {
            EXPECT_EQ(co_await h, std::nullopt);
        }
    }(ch));
    channel<int> full{1};
    coil::run([](channel<int>& c) -> task<> {
        co_await c.send(1);
        auto h = spawn([](channel<int>& out) -> task<> { co_await out.send(2); }(c));
        co_await yield();
        c.close();
        bool refused = false;
        try {
            co_await h;
        } catch (const std::system_error& e) {
            refused = e.code() == std::errc::broken_pipe;
        }
        EXPECT_TRUE(refused);
        EXPECT_EQ(co_await c.recv(), 1);
        EXPECT_EQ(co_await c.recv(), std::nullopt);
    }(full));
}

TEST_F(Channel, WithoutABufferSendWaitsForTheReceiver) {
    channel<int> ch;
    coil::run([](channel<int>& c) -> task<> {
        bool sent = false;
        auto h = spawn([](channel<int>& out, bool& s) -> task<> {
            co_await out.send(1);
            s = true;
        }(c, sent));
        co_await yield();
        co_await yield();
        EXPECT_FALSE(sent);
        EXPECT_EQ(co_await c.recv(), 1);
        co_await h;
        EXPECT_TRUE(sent);
    }(ch));
}

TEST_F(Channel, MoveOnlyElements) {
    channel<std::unique_ptr<int>> ch{1};
    coil::run([](channel<std::unique_ptr<int>>& c) -> task<> {
        co_await c.send(std::make_unique<int>(5));
        auto got = co_await c.recv();
        EXPECT_EQ(**got, 5);
        co_await c.send(std::make_unique<int>(6)); // destroyed by the channel
    }(ch));
}

/// Four coroutines of one context send in turn, and some have to wait.
TEST_F(Channel, G1_SendsOfOneContextAreReceivedInOrder) {
    const int rounds = coil_test::sanitized ? 2000 : coil_test::rounds(20'000, 100'000);
    channel<int> ch{1};
    io_context other;
    other.co_spawn([](channel<int>& it, int n) -> task<> {
        for (int k = 0; k < n; ++k) {
            const auto one = [](channel<int>& to, int value) -> task<> { co_await to.send(value); };
            co_await when_all(one(it, 4 * k), one(it, 4 * k + 1), one(it, 4 * k + 2),
                              one(it, 4 * k + 3));
        }
        it.close();
    }(ch, rounds));
    other.start();
    std::vector<int> got;
    coil::run(receives(ch, got));
    other.join();
    EXPECT_EQ(got.size(), static_cast<std::size_t>(4 * rounds));
    EXPECT_TRUE(std::ranges::is_sorted(got));
}

struct kept {
    std::unique_ptr<int> value;
};

void expect_full_then_closed(channel<kept>& ch) {
    kept one{std::make_unique<int>(1)};
    while (ch.try_send(kept{std::make_unique<int>(0)})) {
    }
    EXPECT_FALSE(ch.try_send(std::move(one)));
    EXPECT_NE(one.value, nullptr); // NOLINT(bugprone-use-after-move): a refused value is kept
    EXPECT_FALSE(ch.is_closed());  // full
    ch.close();
    EXPECT_FALSE(ch.try_send(std::move(one)));
    EXPECT_NE(one.value, nullptr); // NOLINT(bugprone-use-after-move)
    EXPECT_TRUE(ch.is_closed());
}

TEST_F(Channel, AfterARefusedTrySendIsClosedDistinguishesFullFromClosed) {
    channel<kept> bounded(2);
    expect_full_then_closed(bounded);
    channel<kept> unbuffered;
    expect_full_then_closed(unbuffered);
    channel<kept> any(unbounded);
    any.close();
    EXPECT_FALSE(any.try_send(kept{}));
    EXPECT_TRUE(any.is_closed());
}

TEST_F(Channel, G9_ASenderThatIsRefusedByCloseSeesItClosed) {
    for (int round = 0; round < 500; ++round) {
        channel<int> ch(unbounded);
        std::thread closer([&] { ch.close(); });
        while (ch.try_send(1)) { // fails only when closed: an unbounded channel is never full
        }
        EXPECT_TRUE(ch.is_closed());
        closer.join();
    }
}

} // namespace
