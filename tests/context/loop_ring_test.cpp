// loop_ring, the ring of an event loop, tested without the loop.

#include "loop_parts.hpp"
#include "support/fault_environment.hpp"

#include <vector>

namespace {

using namespace loop_parts;

struct attached final : ring_attachment {
    explicit attached(std::vector<attached*>& list) : told(list) {}
    void ring_gone() noexcept override { told.push_back(this); }

    std::vector<attached*>& told;
};

TEST(LoopRing, ReserveFlushesAFullQueue) {
    COIL_SKIP_UNDER_FAULTS("it counts what a ring completes at once");
    ring_alone alone;
    loop_ring& ring = *alone.ring;
    const unsigned entries = fill(ring);
    ASSERT_EQ(entries, ring->sq_entries());
    EXPECT_EQ(ring->sq_space_left(), 0U);
    EXPECT_TRUE(ring.reserve(entries));
    EXPECT_EQ(ring->sq_space_left(), entries);
    EXPECT_EQ(alone.metrics.submissions.get(), entries);
    EXPECT_EQ(alone.metrics.enters.get(), 1U);
    EXPECT_FALSE(ring.reserve(entries + 1)); // more than the queue has
    ring.enter(entries, nullptr, 0);
    EXPECT_EQ(ring->for_each_cqe([](const uring::cqe&) {}), entries);
}

TEST(LoopRing, ClosingNotifiesEachAttachmentOnce) {
    COIL_SKIP_UNDER_FAULTS("it counts what a ring completes at once");
    ring_alone alone;
    std::vector<attached*> told;
    attached first(told);
    attached second(told);
    attached gone(told);
    alone.ring->attach(first);
    alone.ring->attach(gone);
    alone.ring->attach(second);
    loop_ring::detach(gone);
    alone.ring->close();
    EXPECT_EQ(told, (std::vector<attached*>{&second, &first}));
    EXPECT_FALSE(alone.ring->is_open());
    alone.ring->close();
    EXPECT_EQ(told.size(), 2U);
}

TEST(LoopRing, AnotherThreadGetsANewRing) {
    COIL_SKIP_UNDER_FAULTS("it counts what a ring completes at once");
    ring_alone alone;
    std::vector<attached*> told;
    attached of_the_first(told);
    alone.ring->attach(of_the_first);
    alone.ring->bind_to_this_thread();
    EXPECT_TRUE(told.empty()); // the same thread keeps its ring
    std::thread([&alone] {
        alone.ring->bind_to_this_thread();
        fill(*alone.ring);
        alone.ring->enter(1, nullptr, 0);
        EXPECT_GE((*alone.ring)->for_each_cqe([](const uring::cqe&) {}), 1U);
    }).join();
    EXPECT_EQ(told.size(), 1U);
}

TEST(LoopRing, OpensAgainAfterItWasClosed) {
    ring_alone alone;
    alone.ring->close();
    alone.ring->bind_to_this_thread();
    EXPECT_TRUE(alone.ring->is_open());
    EXPECT_GT(fill(*alone.ring), 0U);
}

TEST(LoopRing, NumbersOfBufferGroupsAreNotReusedAtOnce) {
    ring_alone alone;
    const std::uint16_t first = alone.ring->next_buffer_group();
    EXPECT_NE(alone.ring->next_buffer_group(), first);
}

} // namespace
