#include "support.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

// The submission and completion queues as data structures: order, capacity, wrap-around.

namespace uring_test {
namespace {

using QueueOnIoUring = with_io_uring;

sqe numbered(std::uint64_t n) {
    sqe s = prep::nop();
    s.user_data = n;
    return s;
}

std::vector<std::uint64_t> reap(ring& r) {
    std::vector<std::uint64_t> seen;
    r.for_each_cqe([&](const cqe& c) { seen.push_back(c.user_data); });
    return seen;
}

TEST_F(QueueOnIoUring, CommitsAreSeenInCommitOrderWhateverTheAcquisitionOrder) {
    ring r{8};
    sqe* a = r.acquire();
    sqe* b = r.acquire();
    sqe* c = r.acquire();
    *a = numbered(1);
    *b = numbered(2);
    *c = numbered(3);
    r.commit(c);
    r.commit(a);
    EXPECT_EQ(r.sq_ready(), 2U);
    EXPECT_EQ(r.submit_and_wait(2), 2);
    EXPECT_EQ(reap(r), (std::vector<std::uint64_t>{3, 1}));
    r.commit(b);
    EXPECT_EQ(r.submit_and_wait(1), 1);
    EXPECT_EQ(reap(r), (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(r.sq_space_left(), 8U);
}

TEST_F(QueueOnIoUring, G6_AFullQueueGivesNullAndRecoversBySubmitting) {
    ring r{8};
    ASSERT_EQ(r.sq_entries(), 8U);
    std::vector<sqe*> held;
    while (sqe* s = r.acquire()) {
        held.push_back(s);
    }
    EXPECT_EQ(held.size(), 8U);
    EXPECT_EQ(std::set<sqe*>(held.begin(), held.end()).size(), 8U);
    EXPECT_EQ(r.sq_space_left(), 0U);
    for (sqe* s : held) {
        *s = prep::nop();
        r.commit(s);
    }
    EXPECT_EQ(r.acquire(), nullptr); // committed entries are not free before they are submitted
    EXPECT_EQ(r.submit(), 8);
    EXPECT_EQ(r.sq_space_left(), 8U);
    EXPECT_NE(r.acquire(), nullptr);
}

TEST_F(QueueOnIoUring, AnAbandonedEntryIsFreeAgainAndNotSubmitted) {
    ring r{8};
    sqe* a = r.acquire();
    sqe* b = r.acquire();
    EXPECT_EQ(r.sq_space_left(), 6U);
    *b = numbered(2);
    r.abandon(a);
    EXPECT_EQ(r.sq_space_left(), 7U);
    r.commit(b);
    EXPECT_EQ(r.submit_and_wait(1), 1);
    EXPECT_EQ(reap(r), (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(r.sq_space_left(), 8U);
    EXPECT_EQ(r.submit(), 0);
}

TEST_F(QueueOnIoUring, G6_WorkLargerThanTheQueueGoesThrough) {
    ring r{8};
    std::uint64_t sent = 0;
    std::uint64_t seen = 0;
    while (seen < 10000) {
        while (sent < 10000) {
            sqe* s = r.acquire();
            if (s == nullptr) {
                break;
            }
            *s = numbered(sent++);
            r.commit(s);
        }
        ASSERT_GE(r.submit_and_wait(1), 0);
        r.for_each_cqe([&](const cqe& c) { ASSERT_EQ(c.user_data, seen++); });
    }
    EXPECT_EQ(r.cq_overflow(), 0U);
    EXPECT_EQ(r.sq_dropped(), 0U);
}

// Random acquire, commit, abandon and submit, compared with a model of sets and a queue.
void random_walk(ring& r, std::uint32_t seed, unsigned steps, bool submits_whole) {
    std::mt19937 random{seed};
    const unsigned size = r.sq_entries();
    std::map<sqe*, bool> held;
    std::vector<sqe*> hand;
    std::deque<std::uint64_t> committed; // not yet consumed by the kernel
    std::deque<std::uint64_t> expected;  // completions, in order
    std::uint64_t number = 0;

    for (unsigned step = 0; step < steps; ++step) {
        switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
            sqe* s = r.acquire();
            ASSERT_EQ(s == nullptr, hand.size() + committed.size() == size) << "seed " << seed;
            if (s != nullptr) {
                ASSERT_TRUE(held.emplace(s, true).second) << "given out twice, seed " << seed;
                hand.push_back(s);
            }
            break;
        }
        case 3:
        case 4:
        case 5:
            if (!hand.empty()) {
                const auto i = random() % hand.size();
                sqe* s = hand[i];
                hand.erase(hand.begin() + static_cast<std::ptrdiff_t>(i));
                held.erase(s);
                *s = numbered(++number);
                committed.push_back(number);
                r.commit(s);
            }
            break;
        case 6:
            if (!hand.empty()) {
                const auto i = random() % hand.size();
                sqe* s = hand[i];
                hand.erase(hand.begin() + static_cast<std::ptrdiff_t>(i));
                held.erase(s);
                r.abandon(s);
            }
            break;
        default: {
            const int n = r.enter(0, enter_flag::getevents);
            ASSERT_GE(n, 0);
            if (submits_whole) {
                ASSERT_EQ(static_cast<std::size_t>(n), committed.size());
            }
            for (int i = 0; i < n; ++i) {
                expected.push_back(committed.front());
                committed.pop_front();
            }
            const unsigned got = r.for_each_cqe([&](const cqe& c) {
                ASSERT_FALSE(expected.empty());
                ASSERT_EQ(c.user_data, expected.front()) << "seed " << seed;
                expected.pop_front();
            });
            ASSERT_TRUE(got != 0 || expected.empty());
            break;
        }
        }
        ASSERT_EQ(r.sq_space_left(), size - hand.size() - committed.size());
        ASSERT_EQ(r.sq_ready(), committed.size());
    }
    EXPECT_EQ(r.sq_dropped(), 0U);
}

TEST_F(QueueOnIoUring, RandomOrderAgreesWithAModel) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        ring r{seed % 3 == 0 ? 1U : 8U};
        random_walk(r, seed, 4000, true);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST(Queue, RandomOrderAgreesWithAModelAcrossTheWrapOfTheCursors) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        auto k = std::make_unique<memory_backend>(0xffffffffU - seed * 10);
        ring_options options;
        options.entries = 1U << (seed % 5);
        ring r{options, std::move(k)};
        random_walk(r, seed, 4000, true);
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(Queue, RandomOrderAgreesWithAModelWhenTheBackendTakesOnlyAPart) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        auto k = std::make_unique<memory_backend>(0xffffff00U);
        k->most_per_enter = 1 + seed % 4;
        ring_options options;
        options.entries = 16;
        ring r{options, std::move(k)};
        random_walk(r, seed, 4000, false);
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST(Queue, NothingIsPublishedBeforeEnter) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& seen = *k;
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 1);
    EXPECT_EQ(seen.enters, 0U);
    EXPECT_EQ(r.sq_ready(), 1U);
    EXPECT_EQ(r.submit(), 1);
    EXPECT_EQ(r.sq_ready(), 0U);
}

TEST(Queue, EnterWithNothingToDoMakesNoCall) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& seen = *k;
    ring r{ring_options{}, std::move(k)};
    EXPECT_EQ(r.submit(), 0);
    EXPECT_EQ(r.enter(0), 0);
    EXPECT_EQ(seen.enters, 0U);
    EXPECT_EQ(r.enter(0, enter_flag::getevents), 0);
    EXPECT_EQ(seen.enters, 1U);
}

TEST(Queue, ErrorsOfEnterReachTheCallerAndLoseNothing) {
    auto k = std::make_unique<memory_backend>();
    memory_backend& seen = *k;
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 7);
    for (const int error : {-EINTR, -EBUSY, -EAGAIN, -ETIME}) {
        seen.results_to_come = {error};
        EXPECT_EQ(r.submit(), error);
        EXPECT_EQ(r.sq_ready(), 1U);
    }
    EXPECT_EQ(r.submit(), 1);
    EXPECT_EQ(seen.consumed, (std::vector<std::uint64_t>{7}));
}

TEST(Queue, PeekShowsTheOldestCompletionUntilItIsGivenBack) {
    ring r{ring_options{}, std::make_unique<memory_backend>(0xfffffffeU)};
    EXPECT_EQ(r.peek(), nullptr);
    EXPECT_FALSE(r.has_completions());
    for (std::uint64_t i = 1; i <= 5; ++i) {
        queue(r, prep::nop(), i);
    }
    EXPECT_EQ(r.submit(), 5);
    EXPECT_TRUE(r.has_completions());
    EXPECT_EQ(r.peek()->user_data, 1U);
    EXPECT_EQ(r.peek()->user_data, 1U);
    r.advance();
    EXPECT_EQ(r.peek()->user_data, 2U);
    r.advance(3);
    EXPECT_EQ(r.peek()->user_data, 5U);
    r.advance();
    EXPECT_EQ(r.peek(), nullptr);
}

TEST(Queue, AnExceptionFromTheCallbackGivesBackWhatWasHandled) {
    ring r{ring_options{}, std::make_unique<memory_backend>()};
    for (std::uint64_t i = 1; i <= 4; ++i) {
        queue(r, prep::nop(), i);
    }
    r.submit();
    EXPECT_THROW(r.for_each_cqe([](const cqe& c) {
        if (c.user_data == 2) {
            throw std::runtime_error("enough");
        }
    }),
                 std::runtime_error);
    EXPECT_EQ(reap(r), (std::vector<std::uint64_t>{3, 4}));
}

TEST(Queue, TheCallbackMayQueueAndSubmit) {
    ring_options options;
    options.entries = 2;
    options.cq_entries = 4;
    ring r{options, std::make_unique<memory_backend>()};
    queue(r, prep::nop(), 1);
    r.submit();
    std::vector<std::uint64_t> seen;
    // Each completion up to 100 submits two more, through queues that are far too small.
    std::uint64_t last = 1;
    while (seen.size() < 201) {
        r.for_each_cqe([&](const cqe& c) {
            seen.push_back(c.user_data);
            for (int i = 0; i < 2 && c.user_data <= 100; ++i) {
                if (r.sq_space_left() == 0) {
                    ASSERT_GT(r.submit(), 0);
                }
                queue(r, prep::nop(), ++last);
            }
        });
        ASSERT_GE(r.enter(0, enter_flag::getevents), 0);
    }
    ASSERT_EQ(seen.size(), 201U);
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_EQ(seen[i], i + 1);
    }
}

TEST_F(QueueOnIoUring, G6_AnOverflownCompletionQueueLosesNothing) {
    ring_options options;
    options.entries = 8;
    options.cq_entries = 16;
    ring r{options};
    ASSERT_EQ(r.cq_entries(), 16U);
    std::uint64_t sent = 0;
    while (sent < 100) {
        for (int i = 0; i < 4; ++i) {
            queue(r, prep::nop(), sent++);
        }
        int n = r.enter(0);
        if (n == -EBUSY) { // some kernels require reaping the queue first
            break;
        }
        ASSERT_EQ(n, 4);
    }
    EXPECT_TRUE(r.needs_enter());
    std::uint64_t seen = 0;
    while (seen < sent) {
        r.for_each_cqe([&](const cqe& c) { ASSERT_EQ(c.user_data, seen++); });
        ASSERT_GE(r.submit(), 0); // flushes, because the flag was set
        ASSERT_TRUE(seen == sent || r.has_completions());
    }
    EXPECT_FALSE(r.needs_enter());
    EXPECT_EQ(r.cq_overflow(), 0U);
}

} // namespace
} // namespace uring_test
