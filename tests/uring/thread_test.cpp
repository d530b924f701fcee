#include "support.hpp"

#include <atomic>
#include <thread>

#include <poll.h>

// Rings and threads: disabled rings, rings used by several threads in turn, registered ring
// descriptors, messages.

namespace uring_test {
namespace {

using ThreadOnIoUring = with_io_uring;

TEST_F(ThreadOnIoUring, ADisabledRingBelongsToTheThreadThatEnablesIt) {
    ring_options options;
    options.start_disabled = true;
    ring r{options};
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.submit(), -EBADFD);
    EXPECT_EQ(r.sq_ready(), 1U);
    std::thread owner{[&] {
        EXPECT_EQ(r.enable(), 0);
        EXPECT_EQ(r.enable(), -EBADFD); // already enabled
        EXPECT_EQ(r.submit_and_wait(1), 1);
        EXPECT_EQ(next(r).user_data, 1U);
        queue(r, prep::nop(), 2);
    }};
    owner.join();
    if ((r.setup_flags() & setup::single_issuer) != 0) {
        EXPECT_EQ(r.submit(), -EEXIST);
    }
}

TEST_F(ThreadOnIoUring, AnEnabledRingCannotBeEnabled) {
    ring r;
    EXPECT_EQ(r.enable(), -EBADFD);
}

TEST_F(ThreadOnIoUring, WithoutSingleIssuerThreadsMayTakeTurns) {
    ring_options options;
    options.setup_flags &= ~(setup::single_issuer);
    ring r{options};
    EXPECT_EQ(r.setup_flags() & setup::defer_taskrun, 0U);
    ASSERT_EQ(run(r, prep::nop()), 0); // registers the ring for this thread
    for (int i = 0; i < 4; ++i) {
        std::thread other{[&] {
            for (std::uint64_t n = 0; n < 100; ++n) {
                queue(r, prep::nop(), n);
                ASSERT_EQ(r.submit_and_wait(1), 1);
                ASSERT_EQ(next(r).user_data, n);
            }
        }};
        other.join();
        ASSERT_EQ(run(r, prep::nop()), 0);
    }
}

// A registered index has a different meaning in each thread. Here a second thread registers a ring
// of its own under the index that the shared ring has in the first thread. It must still enter the
// right ring.
TEST_F(ThreadOnIoUring, ARegisteredIndexIsNotMistakenForAnotherThreads) {
    ring_options options;
    options.setup_flags &= ~(setup::single_issuer);
    std::unique_ptr<ring> shared;
    std::thread first{[&] {
        shared = std::make_unique<ring>(options);
        ASSERT_EQ(run(*shared, prep::nop()), 0);
    }};
    first.join();
    for (int i = 0; i < 20; ++i) {
        std::thread second{[&] {
            ring own;
            ASSERT_EQ(run(own, prep::nop()), 0);
            queue(*shared, prep::nop(), 5);
            ASSERT_EQ(shared->submit_and_wait(1), 1);
            ASSERT_EQ(next(*shared).user_data, 5U);
            ASSERT_FALSE(own.has_completions());
            ASSERT_EQ(run(own, prep::nop()), 0);
        }};
        second.join();
    }
}

TEST_F(ThreadOnIoUring, G6_MoreRingsThanAThreadCanRegisterAllWork) {
    const auto registered = [](ring& r) {
        return (r.get_backend().direct().flags & enter_flag::registered_ring) != 0;
    };
    // A separate thread, in which every index is free.
    std::thread{[&] {
        std::vector<std::unique_ptr<ring>> rings;
        for (int i = 0; i < 40; ++i) {
            rings.push_back(std::make_unique<ring>(8));
        }
        for (int round = 0; round < 3; ++round) {
            for (auto& r : rings) {
                ASSERT_EQ(run(*r, prep::nop()), 0);
            }
        }
        EXPECT_FALSE(registered(*rings.back()));
        const bool can_register = registered(*rings.front());
        // Indices of destroyed rings are reused.
        rings.clear();
        for (int i = 0; i < 40; ++i) {
            ring r{8};
            ASSERT_EQ(run(r, prep::nop()), 0);
            ASSERT_EQ(registered(r), can_register);
        }
    }}.join();
}

// Whether the ring that held the pipe's only write end is gone, as seen by the reader.
bool hangs_up(int fd, int milliseconds) {
    ::pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, milliseconds) == 1 && (p.revents & POLLHUP) != 0;
}

TEST_F(ThreadOnIoUring, ADetachedRingIsGoneWhenAnotherThreadDestroysIt) {
    COIL_SKIP_ON_EPOLL("no thread is attached to it");
    for (const bool detach : {true, false}) {
        pipe_pair p;
        std::unique_ptr<ring> r;
        std::atomic<int> stage{0};
        std::thread owner{[&] {
            r = std::make_unique<ring>(8);
            int fd = p.out;
            ASSERT_EQ(r->get_backend().do_register(register_op::files, &fd, 1), 0);
            ASSERT_EQ(run(*r, prep::nop()), 0);
            if (detach) {
                r->unregister_ring_fd();
            }
            stage = 1;
            stage.notify_one();
            stage.wait(1);
        }};
        stage.wait(0);
        p.out.reset();
        EXPECT_FALSE(hangs_up(p.in, 0));
        r.reset();
        EXPECT_EQ(hangs_up(p.in, detach ? 10000 : 50), detach);
        stage = 2;
        stage.notify_one();
        owner.join();
        EXPECT_TRUE(hangs_up(p.in, 10000));
    }
}

TEST_F(ThreadOnIoUring, OnlyTheAttachedThreadTakesTheShortcut) {
    COIL_SKIP_ON_EPOLL("there is no shortcut");
    ring_options options;
    options.start_disabled = true;
    ring r{options};
    const backend::shortcut& direct = r.get_backend().direct();
    EXPECT_EQ(direct.thread, 0U);
    std::uint64_t first = 0;
    std::thread{[&] {
        ASSERT_EQ(r.enable(), 0);
        EXPECT_EQ(direct.thread, 0U);
        ASSERT_EQ(run(r, prep::nop()), 0);
        first = direct.thread;
        EXPECT_EQ(first, coil::uring::detail::thread_number);
        r.unregister_ring_fd();
        EXPECT_EQ(direct.thread, 0U);
        ASSERT_EQ(run(r, prep::nop()), 0);
        EXPECT_EQ(direct.thread, 0U);
        r.register_ring_fd();
        EXPECT_EQ(direct.thread, first);
    }}.join();
    EXPECT_EQ(direct.thread, first);
    EXPECT_NE(first, 0U);
    std::thread{[&] {
        ring own{8};
        ASSERT_EQ(run(own, prep::nop()), 0);
        EXPECT_NE(own.get_backend().direct().thread, first);
    }}.join();
}

TEST_F(ThreadOnIoUring, AttachingAndDetachingChangeNothingButSpeed) {
    ring r{8};
    for (int i = 0; i < 5; ++i) {
        r.register_ring_fd();
        ASSERT_EQ(run(r, prep::nop()), 0);
        r.register_ring_fd();
        r.unregister_ring_fd();
        r.unregister_ring_fd();
        ASSERT_EQ(run(r, prep::nop()), 0);
    }
    std::thread{[&] { r.unregister_ring_fd(); }}.join();
    ASSERT_EQ(run(r, prep::nop()), 0);
}

// A message hands ordinary memory over to another thread. ThreadSanitizer must accept that.
TEST_F(ThreadOnIoUring, WhatWasWrittenBeforeAMessageIsSeenAfterIt) {
    struct message {
        int number = 0;
    };
    ring_options options;
    options.start_disabled = true;
    ring target{options};
    ring source{8};
    COIL_NEEDS(source, msg_ring);
    constexpr int count = 200;
    std::vector<message> messages(count);
    std::atomic<bool> ready{false};
    std::thread reader{[&] {
        ASSERT_EQ(target.enable(), 0);
        ready = true;
        ready.notify_one();
        for (int i = 0; i < count; ++i) {
            const cqe c = next(target);
            ASSERT_EQ(c.res, i);
            ASSERT_EQ(reinterpret_cast<message*>(c.user_data)->number, i * i);
        }
    }};
    ready.wait(false);
    for (int i = 0; i < count; ++i) {
        message& l = messages[static_cast<std::size_t>(i)];
        l.number = i * i;
        const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&l));
        ASSERT_EQ(
            run(source, prep::msg_ring(target.native_handle(), static_cast<unsigned>(i), address)),
            0);
    }
    reader.join();
}

} // namespace
} // namespace uring_test
