// detail::fifo and detail::ready_queue, on which all ordering guarantees are based.

#include "support/run.hpp"

#include <coil/core/detail/queue.hpp>
#include <coil/core/detail/ready_queue.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

using coil::detail::fifo;
using coil::detail::queue_node;

namespace {

TEST(Fifo, PopsInPushOrder) {
    fifo q;
    std::array<queue_node, 3> nodes;
    EXPECT_TRUE(q.empty());
    for (auto& n : nodes) {
        q.push(n);
    }
    EXPECT_EQ(q.front(), &nodes[0]);
    for (auto& n : nodes) {
        EXPECT_EQ(&q.pop(), &n);
    }
    EXPECT_TRUE(q.empty());
}

TEST(Fifo, RemovesFirstMiddleLastAndOnly) {
    for (std::size_t gone = 0; gone < 3; ++gone) {
        fifo q;
        std::array<queue_node, 3> nodes;
        for (auto& n : nodes) {
            q.push(n);
        }
        EXPECT_TRUE(q.remove(nodes[gone]));
        EXPECT_FALSE(q.remove(nodes[gone]));
        queue_node late;
        q.push(late);
        for (std::size_t i = 0; i < 3; ++i) {
            if (i != gone) {
                EXPECT_EQ(&q.pop(), &nodes[i]);
            }
        }
        EXPECT_EQ(&q.pop(), &late);
        EXPECT_TRUE(q.empty());
    }
    fifo q;
    queue_node only;
    q.push(only);
    EXPECT_TRUE(q.remove(only));
    EXPECT_TRUE(q.empty());
    q.push(only);
    EXPECT_EQ(&q.pop(), &only);
}

TEST(Fifo, CanBeUsedAfterClear) {
    fifo q;
    queue_node a;
    queue_node b;
    q.push(a);
    q.push(b);
    q.clear();
    EXPECT_TRUE(q.empty());
    q.push(b);
    EXPECT_EQ(&q.pop(), &b);
}

TEST(Fifo, AgreesWithADequeOnRandomWork) {
    std::mt19937 random(7);
    std::vector<queue_node> nodes(64);
    std::vector<bool> queued(nodes.size());
    fifo q;
    std::deque<queue_node*> model;
    for (int i = 0; i < 100'000; ++i) {
        const std::size_t n = random() % nodes.size();
        switch (random() % 3) {
        case 0:
            if (!queued[n]) {
                q.push(nodes[n]);
                model.push_back(&nodes[n]);
                queued[n] = true;
            }
            break;
        case 1:
            if (!model.empty()) {
                queue_node* const oldest = model.front();
                model.pop_front();
                ASSERT_EQ(&q.pop(), oldest);
                queued[static_cast<std::size_t>(oldest - nodes.data())] = false;
            }
            break;
        default:
            ASSERT_EQ(q.remove(nodes[n]), queued[n]);
            std::erase(model, &nodes[n]);
            queued[n] = false;
        }
        ASSERT_EQ(q.empty(), model.empty());
    }
}

// ---- ready_queue: a ring of handles and an overflow list

std::coroutine_handle<> handle_of(std::size_t n) {
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(16 * (n + 1)));
}

TEST(ReadyQueue, PopsInPushOrderFarBeyondItsRing) {
    coil::detail::ready_queue q;
    std::vector<queue_node> nodes(10'000);
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            q.push(nodes[i], handle_of(i));
        }
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            ASSERT_FALSE(q.empty());
            ASSERT_TRUE(q.has_next());
            ASSERT_EQ(q.pop(), handle_of(i));
        }
        ASSERT_TRUE(q.empty());
        ASSERT_FALSE(q.has_next());
    }
}

/// With few coroutines, and with more than fit into the ring, before and after hold().
TEST(ReadyQueue, WhileHeldItHasNoNext) {
    for (const std::size_t half : {2U, 3'000U}) {
        coil::detail::ready_queue q;
        std::vector<queue_node> nodes(2 * half);
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                if (i == half) {
                    q.hold();
                    q.hold(); // has no further effect
                }
                q.push(nodes[i], handle_of(i));
            }
            ASSERT_FALSE(q.has_next());
            ASSERT_FALSE(q.empty());
            ASSERT_EQ(q.size(), nodes.size());
            std::size_t visited = 0;
            q.visit([&visited](std::coroutine_handle<>) { ++visited; });
            ASSERT_EQ(visited, nodes.size());
            ASSERT_TRUE(q.remove(nodes[0], handle_of(0)));
            ASSERT_TRUE(q.remove(nodes[half], handle_of(half)));
            q.release();
            q.release();
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                if (i == half) { // it was behind the ring, the first was in it
                    continue;
                }
                ASSERT_TRUE(q.has_next());
                const std::coroutine_handle<> next = q.pop();
                if (i > 0) {
                    ASSERT_EQ(next, handle_of(i));
                }
            }
            ASSERT_TRUE(q.empty());
        }
    }
}

TEST(ReadyQueue, AClearedQueueIsNotHeld) {
    coil::detail::ready_queue q;
    queue_node node;
    q.push(node, handle_of(0));
    q.hold();
    q.clear();
    EXPECT_TRUE(q.empty());
    q.push(node, handle_of(1));
    ASSERT_TRUE(q.has_next());
    EXPECT_EQ(q.pop(), handle_of(1));
}

/// Applies the same operations to a ready queue and a deque.
class twin_queues {
public:
    explicit twin_queues(unsigned seed) : random_(seed) {
        for (std::size_t n = 0; n < nodes_.size(); ++n) { // remove() requires a pushed node
            queue_.push(nodes_[n], handle_of(n));
        }
        clear();
    }

    void push() {
        next_ = (next_ + 1) % nodes_.size();
        if (!queued_[next_]) {
            queued_[next_] = true;
            queue_.push(nodes_[next_], handle_of(next_));
            model_.push_back(next_);
        }
    }

    void pop() {
        // A removed coroutine may have left a no-op in its slot.
        std::coroutine_handle<> h = std::noop_coroutine();
        while (h == std::noop_coroutine() && queue_.has_next()) {
            h = queue_.pop();
        }
        if (h == std::noop_coroutine()) {
            ASSERT_TRUE(model_.empty());
            return;
        }
        ASSERT_FALSE(model_.empty());
        ASSERT_EQ(h, handle_of(model_.front()));
        queued_[model_.front()] = false;
        model_.pop_front();
    }

    void remove() {
        const std::size_t n = random_() % nodes_.size();
        ASSERT_EQ(queue_.remove(nodes_[n], handle_of(n)), queued_[n]);
        std::erase(model_, n);
        queued_[n] = false;
    }

    void clear() {
        queue_.clear();
        model_.clear();
        queued_.assign(nodes_.size(), false);
        ASSERT_TRUE(queue_.empty());
    }

    void play() {
        for (int phase = 0; phase < 60; ++phase) {
            const auto work = random_() % 4;
            for (auto left = random_() % 1500; left > 0; --left) {
                if (work < 2) {
                    push();
                } else if (work == 2) {
                    pop();
                } else if (random_() % 16 == 0) {
                    remove();
                }
            }
            if (random_() % 20 == 0) {
                clear();
            }
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    }

private:
    std::mt19937 random_;
    coil::detail::ready_queue queue_;
    std::vector<queue_node> nodes_ = std::vector<queue_node>(6000);
    std::vector<bool> queued_ = std::vector<bool>(6000);
    std::deque<std::size_t> model_;
    std::size_t next_ = 0;
};

/// Searching for each one from the front of the queue would take minutes.
TEST(ReadyQueue, ManyAreRemovedInAnyOrderInLinearTime) {
    std::vector<std::size_t> order(coil_test::sanitized ? 40'000 : 400'000);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<queue_node> nodes(order.size() + 1);
    std::mt19937 random(7);
    for (int how = 0; how < 3; ++how) {
        coil::detail::ready_queue q;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            q.push(nodes[i], handle_of(i));
        }
        for (const std::size_t n : order) {
            ASSERT_TRUE(q.remove(nodes[n], handle_of(n)));
            if (n % 1000 == 0) { // a node that is not queued is searched for in the whole ring
                ASSERT_FALSE(q.remove(nodes[n], handle_of(n)));
            }
        }
        queue_node late;
        q.push(late, handle_of(nodes.size()));
        std::vector<std::coroutine_handle<>> left;
        while (q.has_next()) {
            if (const auto next = q.pop(); next != std::noop_coroutine()) {
                left.push_back(next);
            }
        }
        EXPECT_EQ(left, (std::vector{handle_of(order.size()), handle_of(nodes.size())}));
        if (how == 0) {
            std::reverse(order.begin(), order.end());
        } else {
            std::shuffle(order.begin(), order.end(), random);
        }
    }
}

/// A visit is bounded even if most nodes have been removed.
TEST(IndexedOverflow, AVisitCountsEmptyPlaces) {
    std::vector<queue_node> nodes(1000);
    fifo list;
    for (queue_node& node : nodes) {
        list.push(node);
    }
    coil::detail::indexed_overflow q;
    ASSERT_TRUE(q.append(list, nodes.size()));
    for (std::size_t i = 1; i < 900; ++i) {
        ASSERT_TRUE(q.remove(nodes[i]));
    }
    std::size_t visited = 0;
    const auto count = [&visited](const queue_node&) { ++visited; };
    EXPECT_EQ(q.visit(count, 100), 0U);
    EXPECT_EQ(visited, 1U);
    EXPECT_EQ(q.visit(count, 2000), 1000U);
    EXPECT_EQ(visited, 102U);
}

TEST(ReadyQueue, AgreesWithADequeOnRandomWork) {
    for (unsigned seed = 0; seed < 6 && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        twin_queues(seed).play();
    }
}

} // namespace
