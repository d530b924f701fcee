#include "support.hpp"

#include <chrono>
#include <thread>

// The ring on the running kernel: round trips, deferred work, a submitting kernel thread.

namespace uring_test {
namespace {

using namespace std::chrono_literals;
using RingOnIoUring = with_io_uring;

TEST_F(RingOnIoUring, NopsComeBackWithTheirUserData) {
    ring r{64};
    std::uint64_t sent = 0;
    std::uint64_t seen = 0;
    for (unsigned round = 0; round < 500; ++round) {
        const unsigned batch = 1 + round % 64;
        for (unsigned i = 0; i < batch; ++i) {
            queue(r, prep::nop(), sent++);
        }
        ASSERT_EQ(r.submit_and_wait(batch), static_cast<int>(batch));
        ASSERT_EQ(r.for_each_cqe([&](const cqe& c) {
            ASSERT_EQ(c.user_data, seen++);
            ASSERT_EQ(c.res, 0);
            ASSERT_EQ(c.flags, 0U);
        }),
                  batch);
    }
    EXPECT_EQ(seen, sent);
}

// ---- deferred work

TEST_F(RingOnIoUring, DeferredCompletionsAreFlaggedAndPostedBySubmit) {
    COIL_SKIP_ON_EPOLL("it flags pending work, because completions appear only when it is entered");
    ring r{8};
    if ((r.setup_flags() & setup::defer_taskrun) == 0) {
        GTEST_SKIP() << "this kernel has no deferred task work";
    }
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    ASSERT_EQ(r.submit(), 1);
    EXPECT_FALSE(r.needs_enter());
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_TRUE(r.needs_enter());
    EXPECT_FALSE(r.has_completions());
    EXPECT_EQ(r.submit(), 0);
    EXPECT_FALSE(r.needs_enter());
    ASSERT_TRUE(r.has_completions());
    EXPECT_EQ(r.peek()->res, 1);
}

TEST_F(RingOnIoUring, OneBadEntryDoesNotStopTheOthers) {
    ring r{8};
    if ((r.setup_flags() & setup::submit_all) == 0) {
        GTEST_SKIP() << "this kernel stops at a bad entry";
    }
    queue(r, prep::nop(), 1);
    sqe bad = prep::nop();
    bad.opcode = 255;
    queue(r, bad, 2);
    queue(r, prep::nop(), 3);
    EXPECT_EQ(r.submit_and_wait(3), 3);
    EXPECT_EQ(next(r).res, 0);
    EXPECT_EQ(next(r).res, -EINVAL);
    EXPECT_EQ(next(r).res, 0);
}

TEST_F(RingOnIoUring, AKernelThreadCanSubmit) {
    COIL_SKIP_ON_EPOLL("it has no thread that submits");
    ring_options options;
    options.entries = 8;
    options.required_flags = setup::sqpoll;
    options.sq_thread_idle = 1; // so that it falls asleep between the rounds
    ring r{options};
    EXPECT_EQ(r.setup_flags() & (setup::defer_taskrun | setup::coop_taskrun), 0U);
    std::uint64_t sent = 0;
    std::uint64_t seen = 0;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 20; ++i) {
            while (r.sq_space_left() == 0) {
                r.enter(0, enter_flag::sq_wait);
            }
            queue(r, prep::nop(), sent++);
            ASSERT_GE(r.submit(), 0);
        }
        while (seen < sent) {
            ASSERT_EQ(r.wait(10s), 0);
            r.for_each_cqe([&](const cqe& c) { ASSERT_EQ(c.user_data, seen++); });
        }
        std::this_thread::sleep_for(round % 2 == 0 ? 0ms : 5ms);
    }
    EXPECT_EQ(seen, 400U);
}

} // namespace
} // namespace uring_test
