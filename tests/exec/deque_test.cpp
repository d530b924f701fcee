// A worker's deque on real processors; tests/model checks its interleavings.

#include "support/run.hpp"

#include <coil/exec/detail/work_stealing_deque.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct deque_item {
    std::atomic<int> taken{0};
};
using deque_of_items = coil::detail::basic_work_stealing_deque<deque_item>;

TEST(WorkStealingDeque, TheOwnerTakesTheYoungestAndOthersTheOldest) {
    deque_of_items deque(2);
    deque_item items[5];
    EXPECT_TRUE(deque.looks_empty());
    EXPECT_EQ(deque.pop(), nullptr);
    EXPECT_EQ(deque.steal(), nullptr);
    for (deque_item& i : items) {
        EXPECT_TRUE(deque.push(i));
    }
    EXPECT_FALSE(deque.looks_empty());
    EXPECT_EQ(deque.pop(), &items[4]);
    EXPECT_EQ(deque.steal(), &items[0]);
    EXPECT_EQ(deque.steal(), &items[1]);
    EXPECT_EQ(deque.pop(), &items[3]);
    EXPECT_EQ(deque.pop(), &items[2]);
    EXPECT_EQ(deque.pop(), nullptr);
    EXPECT_EQ(deque.steal(), nullptr);
}

TEST(WorkStealingDeque, G1_EveryItemIsTakenOnceWhileItGrows) {
    const int count = coil_test::rounds(coil_test::sanitized ? 20'000 : 200'000, 5'000'000);
    const std::unique_ptr<deque_item[]> items(new deque_item[static_cast<std::size_t>(count)]);
    deque_of_items deque(1);
    std::atomic<bool> over{false};
    auto take = [](deque_item* i) {
        if (i != nullptr) {
            i->taken.fetch_add(1, std::memory_order_relaxed);
        }
    };
    std::vector<std::thread> thieves;
    for (int t = 0; t < 3; ++t) {
        thieves.emplace_back([&] {
            while (!over.load()) {
                take(deque.steal());
            }
        });
    }
    for (int i = 0; i < count; ++i) {
        ASSERT_TRUE(deque.push(items[static_cast<std::size_t>(i)]));
        if (i % 3 == 0) {
            take(deque.pop());
        }
    }
    while (!deque.looks_empty()) {
        take(deque.pop());
    }
    over = true;
    for (std::thread& t : thieves) {
        t.join();
    }
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
        wrong += items[static_cast<std::size_t>(i)].taken.load() != 1 ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0);
}

} // namespace
