// The inbox: messages from other threads arrive once and in order, and wake a sleeping owner.

#include "support/run.hpp"

#include <coil/context/detail/inbox.hpp>

#include <atomic>
#include <thread>
#include <vector>

using coil::detail::inbox;
using coil::detail::queue_node;

namespace {

struct message : queue_node {
    int sender = 0;
    int number = 0;
};

TEST(Inbox, TakesAllInPushOrder) {
    inbox box;
    message messages[3];
    EXPECT_TRUE(box.empty());
    for (auto& l : messages) {
        EXPECT_FALSE(box.push(l)); // the owner does not sleep
    }
    EXPECT_FALSE(box.empty());
    queue_node* node = box.take_all();
    for (auto& l : messages) {
        EXPECT_EQ(node, &l);
        node = node->next;
    }
    EXPECT_EQ(node, nullptr);
    EXPECT_TRUE(box.empty());
    EXPECT_EQ(box.take_all(), nullptr);
}

TEST(Inbox, OnlyTheFirstPushAfterParkingMustWake) {
    inbox box;
    message a;
    message b;
    EXPECT_TRUE(box.try_park());
    EXPECT_TRUE(box.push(a));
    EXPECT_FALSE(box.push(b));
    box.unpark();
    EXPECT_EQ(box.take_all(), &a);
    EXPECT_EQ(a.next, &b);
}

TEST(Inbox, DoesNotParkWhenItIsNotEmpty) {
    inbox box;
    message a;
    EXPECT_FALSE(box.push(a));
    EXPECT_FALSE(box.try_park());
    EXPECT_EQ(box.take_all(), &a);
    EXPECT_TRUE(box.try_park());
    box.unpark();
    EXPECT_TRUE(box.empty());
}

TEST(Inbox, ASignalWakesOnlyASleeper) {
    inbox box;
    EXPECT_FALSE(box.unpark_for_signal());
    EXPECT_TRUE(box.try_park());
    EXPECT_TRUE(box.unpark_for_signal());
    EXPECT_FALSE(box.unpark_for_signal());
}

TEST(Inbox, ManyProducersOneSleepyConsumer_NothingIsLostOrReordered) {
    constexpr int producers = 10;
    const int each = coil_test::rounds(10'000, 300'000);
    inbox box;
    std::atomic<int> wakes{0};
    std::vector<std::vector<message>> messages(producers);
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p) {
        messages[static_cast<std::size_t>(p)].resize(static_cast<std::size_t>(each));
        threads.emplace_back([&, p] {
            int number = 0;
            for (message& l : messages[static_cast<std::size_t>(p)]) {
                l.sender = p;
                l.number = number++;
                if (box.push(l)) {
                    wakes.fetch_add(1);
                    wakes.notify_one();
                }
            }
        });
    }
    int next[producers] = {};
    int received = 0;
    int owed = 0; // wake-up calls that were made or must be made
    for (int sleeps = 0; received < producers * each;) {
        if (box.empty()) {
            if (!box.try_park()) {
                continue;
            }
            // Some sleeps end by themselves. A producer must end the others: a lost wake-up
            // hangs here.
            const bool ends_by_itself = ++sleeps % 4 == 0;
            if (!ends_by_itself) {
                for (int n = wakes; n <= owed; n = wakes) {
                    wakes.wait(n);
                }
            }
            const bool by_another = !box.unpark();
            ASSERT_TRUE(by_another || ends_by_itself);
            owed += by_another ? 1 : 0;
        }
        for (queue_node* node = box.take_all(); node != nullptr;) {
            auto& l = static_cast<message&>(*node);
            node = node->next;
            ASSERT_EQ(l.number, next[l.sender]++);
            ++received;
        }
    }
    for (auto& t : threads) {
        t.join();
    }
    EXPECT_EQ(wakes, owed);
}

} // namespace
