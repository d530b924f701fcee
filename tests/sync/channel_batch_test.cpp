// Batches: send_many() and recv_many() lose, duplicate and reorder nothing, however they end.

#include "sync/support.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <span>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class ChannelBatch : public ::testing::Test {};

using element = std::unique_ptr<int>;

std::vector<element> numbered(int first, int count) {
    std::vector<element> all;
    for (int i = 0; i < count; ++i) {
        all.push_back(std::make_unique<int>(first + i));
    }
    return all;
}

task<> sends_batches(channel<element>& to, int count, int batch, bool closes = true) {
    for (int sent = 0; sent < count; sent += batch) {
        std::vector<element> some = numbered(sent, std::min(batch, count - sent));
        std::span rest(some);
        co_await to.send_many(rest);
        EXPECT_TRUE(rest.empty());
        EXPECT_TRUE(std::ranges::all_of(some, [](const element& e) { return e == nullptr; }));
    }
    if (closes) {
        to.close();
    }
}

task<> receives_batches(channel<element>& from, std::size_t batch, std::vector<int>& got) {
    std::vector<element> some(batch);
    while (const std::size_t n = co_await from.recv_many(some)) {
        EXPECT_LE(n, batch);
        for (std::size_t i = 0; i < n; ++i) {
            got.push_back(*some[i]);
        }
    }
}

std::vector<int> upto(int n) {
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

/// Calls `f` with channels of several capacities, among them none and unbounded.
void for_each_channel(const std::function<void(channel<element>&)>& f) {
    for (const std::size_t room : {0, 1, 2, 7, 64, 100}) {
        SCOPED_TRACE(room);
        channel<element> ch{room};
        f(ch);
    }
    SCOPED_TRACE("unbounded");
    channel<element> all{unbounded};
    f(all);
}

void check_rest(channel<element>& ch, int first, int end) {
    for (int i = first; i < end; ++i) {
        const auto got = ch.try_recv();
        ASSERT_TRUE(got);
        EXPECT_EQ(**got, i);
    }
    EXPECT_FALSE(ch.try_recv());
}

TEST_F(ChannelBatch, G1_BatchesOnOneContext) {
    for (const int batch : {1, 3, 64, 200}) {
        SCOPED_TRACE(batch);
        for_each_channel([batch](channel<element>& ch) {
            std::vector<int> got;
            io_context ctx;
            ctx.co_spawn(receives_batches(ch, static_cast<std::size_t>(batch), got));
            ctx.co_spawn(sends_batches(ch, 1000, batch));
            ctx.run();
            EXPECT_EQ(got, upto(1000));
        });
    }
}

TEST_F(ChannelBatch, G1_BatchesAcrossContexts) {
    const int count = coil_test::rounds(3000, 100'000);
    for (const int batch : {3, 100}) {
        SCOPED_TRACE(batch);
        for_each_channel([=](channel<element>& ch) {
            std::vector<int> got;
            io_context here;
            io_context there;
            here.co_spawn(receives_batches(ch, 50, got));
            there.co_spawn(sends_batches(ch, count, batch));
            there.start();
            here.run();
            there.join();
            EXPECT_EQ(got, upto(count));
        });
    }
}

/// Batches and single elements, two senders and two receivers on each of two contexts.
TEST_F(ChannelBatch, G1_MixedWithSingleElements) {
    const int each = coil_test::rounds(500, 20'000);
    for_each_channel([each](channel<element>& ch) {
        std::vector<int> got[4];
        wait_group senders;
        io_context one;
        io_context two;
        for (int i = 0; i < 4; ++i) {
            io_context& ctx = i % 2 == 0 ? one : two;
            senders.add();
            if (i < 2) {
                ctx.co_spawn(receives_batches(ch, 10, got[i]));
            } else {
                ctx.co_spawn([](channel<element>& in, std::vector<int>& out) -> task<> {
                    while (auto e = co_await in.recv()) {
                        out.push_back(**e);
                    }
                }(ch, got[i]));
            }
            ctx.co_spawn([](channel<element>& to, int n, bool single, wait_group& g) -> task<> {
                if (single) {
                    for (int k = 0; k < n; ++k) {
                        co_await to.send(std::make_unique<int>(k));
                    }
                } else {
                    co_await sends_batches(to, n, 9, false);
                }
                g.done();
            }(ch, each, i >= 2, senders));
        }
        one.co_spawn([](channel<element>& to, wait_group& g) -> task<> {
            co_await g.wait();
            to.close();
        }(ch, senders));
        two.start();
        one.run();
        two.join();
        std::vector<int> times(static_cast<std::size_t>(each));
        for (const auto& some : got) {
            for (const int n : some) {
                ++times[static_cast<std::size_t>(n)];
            }
        }
        EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 4; }));
    });
}

TEST_F(ChannelBatch, ReceivesWhatIsThereAndDoesNotWaitForMore) {
    for_each_channel([](channel<element>& ch) {
        coil::run([](channel<element>& c) -> task<> {
            auto sender = spawn(sends_batches(c, 5, 5));
            co_await yield();
            std::vector<element> into(10);
            std::size_t sum = 0;
            while (const std::size_t n = co_await c.recv_many(into)) {
                EXPECT_EQ(*into[0], static_cast<int>(sum));
                if (c.capacity() >= 5) {
                    EXPECT_EQ(n, 5U);
                }
                sum += n;
            }
            EXPECT_EQ(sum, 5U);
            co_await sender;
        }(ch));
    });
}

TEST_F(ChannelBatch, AnEmptyBatchDoesNotWait) {
    channel<element> ch(1);
    coil::run([](channel<element>& c) -> task<> {
        std::span<element> none;
        EXPECT_EQ(co_await c.recv_many(none), 0U);
        co_await c.send_many(none);
        EXPECT_FALSE(c.try_recv());
    }(ch));
}

/// Returns 'c' if the await was cancelled, 'p' for a broken pipe, 't' for a time limit, else ' '.
template <class Wait>
task<char> outcome(Wait wait) {
    try {
        co_await wait();
    } catch (const std::system_error& e) {
        co_return e.code() == std::errc::operation_canceled ? 'c'
        : e.code() == std::errc::broken_pipe                ? 'p'
        : e.code() == std::errc::timed_out                  ? 't'
                                                            : '?';
    }
    co_return ' ';
}

void check_unsent(std::span<element> rest, int first, int end) {
    ASSERT_EQ(rest.size(), static_cast<std::size_t>(end - first));
    for (const element& e : rest) {
        ASSERT_NE(e, nullptr);
        EXPECT_EQ(*e, first++);
    }
}

/// A send_many() of 10 elements that waits, after `room` of them were sent.
struct waiting_sender {
    std::vector<element> values = numbered(0, 10);
    std::span<element> rest{values};

    auto operator()(channel<element>& ch) {
        return outcome([this, &ch] { return ch.send_many(rest); });
    }
};

/// Calls `act(handle)` while the sender waits, which must then end with that outcome.
template <class Act>
task<> ends(channel<element>& ch, waiting_sender& sender, char how, Act act) {
    auto handle = spawn(sender(ch));
    co_await yield();
    act(handle);
    EXPECT_EQ(co_await handle, how);
}

TEST_F(ChannelBatch, G3_ACancelledSenderKeepsWhatWasNotSent) {
    for (const int room : {0, 1, 4}) {
        channel<element> ch(static_cast<std::size_t>(room));
        waiting_sender sender;
        coil::run(ends(ch, sender, 'c', [](auto& h) { h.cancel(); }));
        check_unsent(sender.rest, room, 10);
        check_rest(ch, 0, room);
    }
}

/// The stop comes after a receiver has taken the element that waits, before the sender resumes.
TEST_F(ChannelBatch, G3_AnElementThatWasTakenIsNotKept) {
    for (const int room : {0, 1, 4}) {
        channel<element> ch(static_cast<std::size_t>(room));
        waiting_sender sender;
        coil::run(ends(ch, sender, 'c', [&ch](auto& h) {
            const auto first = ch.try_recv();
            EXPECT_EQ(**first, 0);
            h.cancel();
        }));
        check_unsent(sender.rest, room + 1, 10);
        check_rest(ch, 1, room + 1);
    }
}

TEST_F(ChannelBatch, G3_AStoppedTaskSendsNothing) {
    for_each_channel([](channel<element>& ch) {
        waiting_sender sender;
        coil::run([](channel<element>& c, waiting_sender& s) -> task<> {
            auto h = spawn(s(c));
            h.cancel();
            EXPECT_EQ(co_await h, 'c');
        }(ch, sender));
        check_unsent(sender.rest, 0, 10);
        check_rest(ch, 0, 0);
    });
}

TEST_F(ChannelBatch, ATimeLimitKeepsWhatWasNotSent) {
    channel<element> ch(4);
    waiting_sender sender;
    coil::run([](channel<element>& c, waiting_sender& s) -> task<> {
        EXPECT_EQ(co_await outcome([&] { return timeout(c.send_many(s.rest), 1ms); }), 't');
    }(ch, sender));
    check_unsent(sender.rest, 4, 10);
    check_rest(ch, 0, 4);
}

TEST_F(ChannelBatch, CloseKeepsWhatWasNotSent) {
    for (const int room : {0, 1, 4}) {
        channel<element> ch(static_cast<std::size_t>(room));
        waiting_sender sender;
        coil::run(ends(ch, sender, 'p', [&ch](auto&) { ch.close(); }));
        check_unsent(sender.rest, room, 10);
        check_rest(ch, 0, room);
    }
}

TEST_F(ChannelBatch, AClosedChannelTakesNothing) {
    for_each_channel([](channel<element>& ch) {
        ch.close();
        waiting_sender sender;
        coil::run([](channel<element>& c, waiting_sender& s) -> task<> {
            EXPECT_EQ(co_await s(c), 'p');
            std::array<element, 4> into;
            EXPECT_EQ(co_await c.recv_many(into), 0U);
        }(ch, sender));
        check_unsent(sender.rest, 0, 10);
    });
}

coil_test::manual sends_all(channel<element>& to, std::span<element>& rest) {
    co_await to.send_many(rest);
}

TEST_F(ChannelBatch, G5_ADestroyedSenderKeepsWhatWasNotSent) {
    for (const bool taken : {false, true}) {
        for (const int room : {0, 1, 4}) {
            channel<element> ch(static_cast<std::size_t>(room));
            waiting_sender sender;
            coil::run([](channel<element>& c, std::span<element>& rest, bool take) -> task<> {
                auto frame = sends_all(c, rest);
                frame.start();
                if (take) {
                    EXPECT_TRUE(c.try_recv());
                }
                frame.destroy();
                co_return;
            }(ch, sender.rest, taken));
            const int first = taken ? 1 : 0;
            check_unsent(sender.rest, room + first, 10);
            check_rest(ch, first, room + first);
        }
    }
}

/// The receiver is stopped or destroyed after elements were sent and before it resumes.
TEST_F(ChannelBatch, G3_ACancelledReceiverTakesNothing) {
    for (const std::size_t room : {1, 4}) {
        channel<element> ch(room);
        std::array<element, 4> into;
        coil::run([](channel<element>& c, std::span<element> to) -> task<> {
            auto h = spawn(
                outcome([&c, to]() -> task<> { static_cast<void>(co_await c.recv_many(to)); }));
            co_await yield();
            for (int i = 0; i <= static_cast<int>(c.capacity()); ++i) {
                EXPECT_TRUE(c.try_send(std::make_unique<int>(i)));
            }
            h.cancel();
            EXPECT_EQ(co_await h, 'c');
        }(ch, into));
        EXPECT_TRUE(std::ranges::all_of(into, [](const element& e) { return e == nullptr; }));
        check_rest(ch, 0, static_cast<int>(room) + 1);
    }
}

coil_test::manual receives_some(channel<element>& from, std::span<element> into) {
    static_cast<void>(co_await from.recv_many(into));
}

TEST_F(ChannelBatch, G5_ADestroyedReceiverTakesNothing) {
    channel<element> ch(4);
    std::array<element, 4> into;
    coil::run([](channel<element>& c, std::span<element> to) -> task<> {
        auto frame = receives_some(c, to);
        frame.start();
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(c.try_send(std::make_unique<int>(i)));
        }
        frame.destroy();
        co_return;
    }(ch, into));
    check_rest(ch, 0, 3);
}

/// The result of a child that is not wanted stays in the channel.
TEST_F(ChannelBatch, G4_AnUnwantedBatchStaysInTheChannel) {
    channel<element> ch(4);
    std::array<element, 4> into;
    coil::run([](channel<element>& c, std::span<element> to) -> task<> {
        std::vector<element> values = numbered(0, 3);
        std::span rest(values);
        co_await c.send_many(rest);
        auto fails = []() -> task<> {
            co_await yield();
            throw 5;
        };
        int caught = 0;
        try {
            co_await when_all(c.recv_many(to), fails());
        } catch (int thrown) {
            caught = thrown;
        }
        EXPECT_EQ(caught, 5);
        EXPECT_EQ(to[0], nullptr);
        const auto first = co_await timeout(c.recv_many(to.first(2)), 24h);
        EXPECT_EQ(first, 2U);
        EXPECT_EQ(*to[1], 1);
    }(ch, into));
    check_rest(ch, 2, 3);
}

/// A loop whose awaits need not wait lets other coroutines run.
TEST_F(ChannelBatch, G7_LetsOthersRun) {
    channel<element> ch(64);
    coil::run([](channel<element>& c) -> task<> {
        bool over = false;
        auto other = spawn([](bool& o) -> task<> {
            o = true;
            co_return;
        }(over));
        int rounds = 0;
        std::array<element, 4> into;
        while (!over && rounds < 1000) {
            std::vector<element> values = numbered(0, 4);
            std::span rest(values);
            co_await c.send_many(rest);
            EXPECT_EQ(co_await c.recv_many(into), 4U);
            ++rounds;
        }
        EXPECT_LE(rounds, 128);
        co_await other;
    }(ch));
}

TEST_F(ChannelBatch, BatchesInTheSimulator) {
    for_each_channel([](channel<element>& ch) {
        sim::world w(1);
        std::vector<int> got;
        sim::host& a = w.host("a");
        a.co_spawn(receives_batches(ch, 5, got));
        a.co_spawn(sends_batches(ch, 300, 7));
        w.run();
        EXPECT_EQ(got, upto(300));
    });
}

/// Another thread sends while the owner of the bias receives batches.
TEST_F(ChannelBatch, G1_AnotherThreadComesWhileBatchesPass) {
    for (int round = 0; round < 50; ++round) {
        channel<element> ch(8);
        std::vector<int> got;
        std::thread other;
        coil::run([](channel<element>& c, std::vector<int>& out, std::thread& t) -> task<> {
            co_await c.send(std::make_unique<int>(0)); // biases the channel
            t = std::thread([&c] {
                for (int i = 1; i < 500; ++i) {
                    while (!c.try_send(std::make_unique<int>(i))) {
                        std::this_thread::yield();
                    }
                }
                c.close();
            });
            co_await receives_batches(c, 5, out);
        }(ch, got, other));
        other.join();
        EXPECT_EQ(got, upto(500));
    }
}

} // namespace
