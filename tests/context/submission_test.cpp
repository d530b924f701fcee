// Submission with back-pressure and cancellation, without a running loop.

#include "loop_parts.hpp"
#include "support/fault_environment.hpp"

#include <coil/context/detail/cancellation.hpp>
#include <coil/context/detail/submission.hpp>

#include <array>
#include <cerrno>

namespace {

using namespace loop_parts;

/// An operation of one SQE, as `submission` and `cancellation` see it. No coroutine awaits it.
class bare_op : public io_op {
public:
    explicit bare_op(event_loop& loop, const uring::sqe& request = uring::prep::nop())
        : entry(request) {
        prepare(loop);
    }
    bare_op(event_loop& loop, op_state::kind kind) : io_op(kind) {
        entry.request = uring::prep::nop();
        prepare(loop);
    }
    ~bare_op() {
        if (pending()) {
            state().complete(); // the test has reaped its completion
        }
    }
    bare_op(const bare_op&) = delete;
    bare_op& operator=(const bare_op&) = delete;

    /// Makes it a chain of `entries` entries, beginning with `entry`, that posts one completion.
    void set_chain(std::uint16_t entries) {
        set_submission(entry, entries);
        state().set_posts_one_cqe(true);
    }

    sqe_slot entry;

private:
    void prepare(event_loop& loop) {
        begin(loop, {});
        state().start(false);
        set_submission(entry, 1);
    }
};

class Submission : public ::testing::Test {
protected:
    explicit Submission(std::uint32_t max_in_flight = UINT32_MAX)
        : submitted(*alone.ring, max_in_flight), cancelled(*alone.ring, alone.metrics) {}

    void SetUp() override { COIL_SKIP_UNDER_FAULTS("it counts what a ring completes at once"); }

    /// Reaps all completions, waiting for at least `at_least`; returns their number.
    unsigned reap(unsigned at_least) {
        alone.ring->enter(at_least, nullptr, 0);
        return (*alone.ring)->for_each_cqe([this](const uring::cqe& c) {
            last = c;
            if ((c.user_data & 7) == static_cast<std::uint64_t>(completion_kind::entry)) {
                submitted.on_completed(1);
            }
        });
    }

    io_context idle{8}; // its loop does not run, but each operation refers to a loop
    event_loop& loop = idle.loop();
    ring_alone alone;
    submission submitted;
    cancellation cancelled;
    uring::cqe last{};
};

struct LimitOfTwo : Submission {
    LimitOfTwo() : Submission(2) {}
};

TEST_F(Submission, AnEntryAtOnceIsOneInFlight) {
    bare_op op(loop);
    ASSERT_TRUE(submitted.submit_at_once(*alone.ring, op.entry));
    EXPECT_EQ(submitted.in_flight(), 1U);
    EXPECT_TRUE(submitted.has_work());
    EXPECT_EQ(reap(1), 1U);
    EXPECT_EQ(last.user_data, reinterpret_cast<std::uintptr_t>(&op.entry));
    EXPECT_FALSE(submitted.has_work());
}

TEST_F(Submission, AsManyCompletionsAreDueAsEntriesThatPostOne) {
    bare_op single(loop);
    ASSERT_TRUE(submitted.submit_at_once(*alone.ring, single.entry));
    EXPECT_EQ(submitted.completions_due(), 1U);
    bare_op chain(loop);
    sqe_slot last_of_chain(uring::prep::nop());
    chain.entry.set_next(&last_of_chain);
    chain.entry.request.flags |= uring::sqe_flag::io_link | uring::sqe_flag::cqe_skip_success;
    chain.set_chain(2);
    ASSERT_TRUE(submitted.submit(chain));
    EXPECT_EQ(submitted.in_flight(), 3U);
    EXPECT_EQ(submitted.completions_due(), 2U);
    submitted.on_chain_completed(2); // reap() would count this completion as that of one entry
    EXPECT_EQ(submitted.in_flight(), 1U);
    EXPECT_EQ(submitted.completions_due(), 1U);
    bare_op stream(loop, op_state::kind::multishot);
    ASSERT_TRUE(submitted.submit(stream));
    EXPECT_EQ(submitted.completions_due(), UINT32_MAX); // a multishot request posts any number
    submitted.on_multishot_ended();
    submitted.on_completed(1);
    EXPECT_EQ(submitted.completions_due(), 1U);
    alone.ring->enter(3, nullptr, 0);
    EXPECT_EQ((*alone.ring)->for_each_cqe([](const uring::cqe&) {}), 3U);
}

TEST_F(Submission, AnEntryAtOnceNeedsSpaceInTheQueue) {
    fill(*alone.ring);
    bare_op op(loop);
    EXPECT_FALSE(submitted.submit_at_once(*alone.ring, op.entry));
    EXPECT_EQ(submitted.in_flight(), 0U);
    submitted.submit(op); // flushes
    EXPECT_EQ(submitted.in_flight(), 1U);
    reap(9);
}

TEST_F(LimitOfTwo, G6_OperationsBeyondTheLimitWaitInOrder) {
    std::array ops{bare_op(loop), bare_op(loop), bare_op(loop), bare_op(loop)};
    for (bare_op& op : ops) {
        submitted.submit(op);
    }
    EXPECT_EQ(submitted.in_flight(), 2U);
    EXPECT_EQ(submitted.held_back(), 2U);
    EXPECT_TRUE(submitted.has_queued());
    EXPECT_FALSE(submitted.sq_starved()); // the limit holds it back, not the queue
    bare_op late(loop);
    EXPECT_FALSE(submitted.submit_at_once(*alone.ring, late.entry)); // it would overtake the queue
    submitted.admit_queued();
    EXPECT_EQ(submitted.in_flight(), 2U);
    while (submitted.in_flight() > 0) {
        reap(1);
    }
    submitted.admit_queued();
    EXPECT_EQ(submitted.in_flight(), 2U);
    EXPECT_FALSE(submitted.has_queued());
    while (submitted.in_flight() > 0) {
        reap(1);
    }
    EXPECT_EQ(last.user_data, reinterpret_cast<std::uintptr_t>(&ops[3].entry));
}

TEST_F(LimitOfTwo, AnOperationThatLeavesTheQueueIsNotSubmitted) {
    std::array ops{bare_op(loop), bare_op(loop), bare_op(loop), bare_op(loop)};
    for (bare_op& op : ops) {
        submitted.submit(op);
    }
    submitted.dequeue(ops[2]);
    submitted.dequeue(ops[3]);
    EXPECT_FALSE(submitted.has_queued());
    while (submitted.in_flight() > 0) {
        reap(1);
    }
}

TEST_F(LimitOfTwo, AnOperationThatBypassesTheQueueExceedsTheLimit) {
    std::array ops{bare_op(loop), bare_op(loop), bare_op(loop), bare_op(loop)};
    for (bare_op& op : ops) {
        submitted.submit(op);
    }
    submitted.bypass_queue(ops[3]);
    EXPECT_EQ(submitted.in_flight(), 3U);
    EXPECT_EQ(submitted.held_back(), 1U);
    submitted.dequeue(ops[2]);
    while (submitted.in_flight() > 0) {
        reap(1);
    }
}

TEST_F(LimitOfTwo, G3_HeldBackOperationsAreCancelledWithoutTheKernel) {
    std::array ops{bare_op(loop), bare_op(loop), bare_op(loop), bare_op(loop)};
    for (bare_op& op : ops) {
        submitted.submit(op);
    }
    submitted.cancel_queued();
    EXPECT_FALSE(submitted.has_queued());
    EXPECT_EQ(ops[2].entry.result, -ECANCELED);
    EXPECT_EQ(ops[3].entry.result, -ECANCELED);
    EXPECT_FALSE(ops[2].pending());
    EXPECT_TRUE(ops[0].pending());
    while (submitted.in_flight() > 0) {
        reap(1);
    }
}

TEST_F(Submission, AnExclusiveOperationIsInFlightAlone) {
    bare_op before(loop);
    bare_op exclusive(loop);
    bare_op after(loop);
    exclusive.state().make_exclusive();
    submitted.submit(before);
    submitted.submit(exclusive);
    submitted.submit(after);
    EXPECT_EQ(submitted.in_flight(), 1U);
    reap(1);
    submitted.admit_queued();
    EXPECT_EQ(submitted.in_flight(), 1U);
    EXPECT_TRUE(submitted.has_queued());
    reap(1);
    EXPECT_EQ(last.user_data, reinterpret_cast<std::uintptr_t>(&exclusive.entry));
    submitted.on_exclusive_ended();
    submitted.admit_queued();
    reap(1);
    EXPECT_EQ(last.user_data, reinterpret_cast<std::uintptr_t>(&after.entry));
    EXPECT_FALSE(submitted.has_work());
}

TEST_F(Submission, AMultishotRequestDoesNotCountAsWork) {
    bare_op stream(loop, op_state::kind::multishot);
    submitted.submit(stream);
    EXPECT_EQ(submitted.in_flight(), 1U);
    EXPECT_FALSE(submitted.has_work());
    bare_op exclusive(loop);
    exclusive.state().make_exclusive();
    submitted.submit(exclusive);
    submitted.admit_queued();
    EXPECT_EQ(submitted.in_flight(), 2U); // it does not wait for the multishot request
    reap(2);
    submitted.on_multishot_ended();
    submitted.on_exclusive_ended();
}

TEST_F(Submission, G3_ARequestToCancelReachesTheOperation) {
    uring::timespec hour{3600, 0};
    bare_op sleeper(loop, uring::prep::timeout(&hour));
    submitted.submit(sleeper);
    sleeper.state().request_cancel();
    cancelled.request(sleeper);
    EXPECT_FALSE(cancelled.has_retries());
    unsigned completions = 0;
    while (completions < 2) {
        completions += reap(1);
    }
    EXPECT_EQ(submitted.in_flight(), 0U);
    EXPECT_EQ(alone.metrics.cancels.get(), 1U);
}

TEST_F(Submission, ARetryIsMadeWhenItIsDueAndOnlyOnce) {
    uring::timespec hour{3600, 0};
    bare_op sleeper(loop, uring::prep::timeout(&hour));
    submitted.submit(sleeper);
    sleeper.state().request_cancel();
    cancelled.retry_later(sleeper);
    cancelled.retry_later(sleeper);
    EXPECT_EQ(alone.metrics.cancel_retries.get(), 1U);
    ASSERT_TRUE(cancelled.has_retries());
    while (alone.ring->now_ns() < cancelled.retry_at_ns()) {
    }
    cancelled.retry();
    EXPECT_FALSE(cancelled.has_retries());
    EXPECT_EQ(alone.metrics.cancels.get(), 1U);
    unsigned completions = 0;
    while (completions < 2) {
        completions += reap(1);
    }
    EXPECT_EQ(submitted.in_flight(), 0U);
}

TEST_F(Submission, ARetryIsForgottenWhenTheOperationEnds) {
    bare_op op(loop);
    bare_op other(loop);
    for (bare_op* each : {&op, &other}) {
        submitted.submit(*each);
        each->state().request_cancel();
    }
    cancelled.retry_later(op);
    cancelled.retry_later(other);
    cancelled.forget(op);
    EXPECT_TRUE(cancelled.has_retries());
    cancelled.forget(other);
    EXPECT_FALSE(cancelled.has_retries());
    while (submitted.in_flight() > 0) {
        reap(1);
    }
}

} // namespace
