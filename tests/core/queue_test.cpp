// detail::fifo, the queue behind every order that coil promises.

#include <coil/core/queue.hpp>

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>
#include <vector>

using coil::detail::fifo;
using coil::detail::queue_node;

namespace {

TEST(Fifo, GivesBackInOrder) {
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

TEST(Fifo, ClearForgetsAllAndGoesOn) {
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

} // namespace
