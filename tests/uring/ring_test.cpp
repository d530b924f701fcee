#include "support.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include <csignal>
#include <poll.h>
#include <pthread.h>
#include <sys/time.h>

// The ring against the running kernel: waiting, timeouts, disabled rings, threads.

namespace uring_test {
namespace {

using namespace std::chrono_literals;
using ring_on_io_uring = with_io_uring;
using clock = std::chrono::steady_clock;

TEST_F(ring_on_io_uring, nops_come_back_with_their_user_data) {
    ring r{64};
    std::uint64_t sent = 0;
    std::uint64_t seen = 0;
    for (unsigned round = 0; round < 500; ++round) {
        const unsigned batch = 1 + round % 64;
        for (unsigned i = 0; i < batch; ++i)
            queue(r, prep::nop(), sent++);
        ASSERT_EQ(r.submit_and_wait(batch), static_cast<int>(batch));
        ASSERT_EQ(r.for_each_completion([&](const cqe& c) {
            ASSERT_EQ(c.user_data, seen++);
            ASSERT_EQ(c.res, 0);
            ASSERT_EQ(c.flags, 0U);
        }),
                  batch);
    }
    EXPECT_EQ(seen, sent);
}

// ---- wait()

TEST_F(ring_on_io_uring, wait_ends_with_etime_and_not_before) {
    ring r{8};
    const auto start = clock::now();
    EXPECT_EQ(r.wait(30ms), -ETIME);
    const auto took = clock::now() - start;
    EXPECT_GE(took, 30ms);
    EXPECT_LT(took, 5s);
}

TEST_F(ring_on_io_uring, wait_submits_and_returns_with_the_first_completion) {
    ring r{8};
    pipe_pair p;
    char byte = 0;
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    std::thread writer{[&] {
        std::this_thread::sleep_for(20ms);
        ASSERT_EQ(::write(p.out, "x", 1), 1);
    }};
    const auto start = clock::now();
    EXPECT_EQ(r.wait(10s), 0);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(next(r).res, 1);
    EXPECT_EQ(byte, 'x');
    writer.join();
}

TEST_F(ring_on_io_uring, wait_of_no_time_looks_and_does_not_wait) {
    ring r{8};
    const auto start = clock::now();
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(r.wait(0ns), -ETIME);
        EXPECT_EQ(r.wait(-5s), -ETIME);
    }
    EXPECT_LT(clock::now() - start, 2s);
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.wait(0ns), 0);
    EXPECT_EQ(r.wait(0ns), 0); // still there
    EXPECT_EQ(r.wait(1h), 0);
}

TEST_F(ring_on_io_uring, wait_takes_the_longest_time_there_is) {
    ring r{8};
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.wait(std::chrono::nanoseconds::max()), 0);
    next(r);
    timespec soon{0, 1'000'000};
    queue(r, prep::timeout(&soon), 2);
    EXPECT_EQ(r.wait(std::chrono::nanoseconds::max()), 0);
    EXPECT_EQ(next(r).res, -ETIME);
}

void on_alarm(int) {}

// SIGALRM every 20 ms while it lives, without SA_RESTART.
class alarm_clock {
public:
    alarm_clock() {
        struct sigaction action{};
        action.sa_handler = on_alarm;
        ::sigaction(SIGALRM, &action, &old_);
        const ::itimerval every{{0, 20000}, {0, 20000}};
        ::setitimer(ITIMER_REAL, &every, nullptr);
    }
    ~alarm_clock() {
        const ::itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        ::sigaction(SIGALRM, &old_, nullptr);
    }

private:
    struct sigaction old_{};
};

TEST_F(ring_on_io_uring, a_signal_ends_the_wait_also_when_entries_were_submitted_by_it) {
    ring r{8};
    pipe_pair p;
    char byte = 0;
    const alarm_clock alarms;
    EXPECT_EQ(r.wait(10s), -EINTR);
    EXPECT_EQ(r.submit_and_wait(1), -EINTR);
    // Here the kernel says "one entry consumed" and keeps the signal to itself.
    queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
    const auto start = clock::now();
    EXPECT_EQ(r.wait(10s), -EINTR);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(r.unsubmitted(), 0U);
    ASSERT_EQ(::write(p.out, "x", 1), 1);
    EXPECT_EQ(next(r).res, 1);
}

TEST(ring, wait_follows_the_clock_of_its_kernel) {
    auto k = std::make_unique<memory_kernel>();
    memory_kernel& world = *k;
    ring r{ring_options{}, std::move(k)};
    const auto start = clock::now();
    const auto virtual_start = r.now();
    EXPECT_EQ(r.wait(1000h), -ETIME);
    EXPECT_LT(clock::now() - start, 5s);
    EXPECT_EQ(world.elapsed, 1000h);
    EXPECT_EQ(r.now() - virtual_start, 1000h);
}

TEST(ring, wait_goes_on_when_the_kernel_took_only_a_part) {
    auto k = std::make_unique<memory_kernel>();
    memory_kernel& world = *k;
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 1);
    world.results_to_come = {0, 0}; // consumed nothing, said nothing
    EXPECT_EQ(r.wait(1s), 0);
    EXPECT_EQ(world.enters, 3U);
}

// ---- enter()'s timeout

TEST_F(ring_on_io_uring, enter_waits_for_as_many_as_asked_or_until_the_time_is_over) {
    ring r{8};
    timespec ts{0, 30'000'000};
    auto start = clock::now();
    EXPECT_EQ(r.enter(1, 0, &ts), -ETIME);
    EXPECT_GE(clock::now() - start, 30ms);
    queue(r, prep::nop(), 1);
    start = clock::now();
    EXPECT_EQ(r.enter(2, 0, &ts), 1); // submitted one, the second never came
    EXPECT_GE(clock::now() - start, 30ms);
    start = clock::now();
    EXPECT_EQ(r.enter(2, 0, &ts), 0); // as there is one, running out of time is no error
    EXPECT_GE(clock::now() - start, 30ms);
    EXPECT_EQ(r.enter(1, 0, &ts), 0);
    EXPECT_LT(clock::now() - start, 5s);
}

TEST_F(ring_on_io_uring, enter_takes_an_absolute_time) {
    ring r{8};
    const auto at = clock::now() + 40ms;
    const auto since = at.time_since_epoch();
    timespec ts{std::chrono::duration_cast<std::chrono::seconds>(since).count(),
                (since % 1s).count()};
    const int got = r.enter(1, enter_flag::abs_timer, &ts);
    if (got == -EINVAL)
        GTEST_SKIP() << "this kernel has no absolute wait";
    EXPECT_EQ(got, -ETIME);
    EXPECT_GE(clock::now(), at);
    EXPECT_LT(clock::now(), at + 5s);
}

TEST_F(ring_on_io_uring, min_wait_collects_for_a_while_and_is_then_content_with_one) {
    ring r{8};
    if ((r.features() & feature::min_timeout) == 0)
        GTEST_SKIP() << "this kernel has no minimum wait";
    pipe_pair p;
    char byte = 0;
    const auto write_after = [&](std::chrono::milliseconds delay) {
        return std::thread{[&p, delay] {
            std::this_thread::sleep_for(delay);
            ASSERT_EQ(::write(p.out, "x", 1), 1);
        }};
    };
    timespec limit{10, 0};
    for (const timespec* timeout : {static_cast<const timespec*>(&limit),
                                    static_cast<const timespec*>(nullptr)}) {
        // The first completion comes within the minimum and does not end it.
        queue(r, prep::read(p.in, &byte, 1, prep::current_position), 1);
        auto start = clock::now();
        std::thread writer = write_after(5ms);
        EXPECT_EQ(r.enter(2, 0, timeout, 60'000), 1);
        auto took = clock::now() - start;
        EXPECT_GE(took, 60ms);
        EXPECT_LT(took, 5s);
        EXPECT_TRUE(r.has_completions());
        EXPECT_EQ(next(r).res, 1);
        writer.join();

        // Nothing within the minimum: the first completion afterwards ends the wait.
        queue(r, prep::read(p.in, &byte, 1, prep::current_position), 2);
        start = clock::now();
        writer = write_after(60ms);
        EXPECT_EQ(r.enter(2, 0, timeout, 5'000), 1);
        took = clock::now() - start;
        EXPECT_GE(took, 60ms);
        EXPECT_LT(took, 5s);
        EXPECT_TRUE(r.has_completions());
        EXPECT_EQ(next(r).res, 1);
        writer.join();
    }
}

TEST_F(ring_on_io_uring, min_wait_is_left_out_where_the_kernel_lacks_it) {
    auto k = std::make_unique<filter_kernel>();
    k->after_setup = [](params& p) { p.features &= ~feature::min_timeout; };
    std::uint32_t seen = 0;
    k->refuse_enter = [&](unsigned flags, const void* arg, std::size_t) {
        if ((flags & enter_flag::ext_arg) != 0)
            seen = std::max(seen, static_cast<const getevents_arg*>(arg)->min_wait_usec);
        return 0;
    };
    ring r{ring_options{}, std::move(k)};
    queue(r, prep::nop(), 1);
    timespec limit{10, 0};
    EXPECT_EQ(r.enter(1, 0, &limit, 1000), 1);
    EXPECT_EQ(seen, 0U);
}

// ---- deferred work

TEST_F(ring_on_io_uring, deferred_completions_are_flagged_and_posted_by_submit) {
    ring r{8};
    if ((r.setup_flags() & setup::defer_taskrun) == 0)
        GTEST_SKIP() << "this kernel has no deferred task work";
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

TEST_F(ring_on_io_uring, one_bad_entry_does_not_stop_the_others) {
    ring r{8};
    if ((r.setup_flags() & setup::submit_all) == 0)
        GTEST_SKIP() << "this kernel stops at a bad entry";
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

TEST_F(ring_on_io_uring, a_kernel_thread_can_submit) {
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
            while (r.room() == 0)
                r.enter(0, enter_flag::sq_wait);
            queue(r, prep::nop(), sent++);
            ASSERT_GE(r.submit(), 0);
        }
        while (seen < sent) {
            ASSERT_EQ(r.wait(10s), 0);
            r.for_each_completion([&](const cqe& c) { ASSERT_EQ(c.user_data, seen++); });
        }
        std::this_thread::sleep_for(round % 2 == 0 ? 0ms : 5ms);
    }
    EXPECT_EQ(seen, 400U);
}

// ---- disabled rings and threads

TEST_F(ring_on_io_uring, a_disabled_ring_belongs_to_the_thread_that_enables_it) {
    ring_options options;
    options.start_disabled = true;
    ring r{options};
    queue(r, prep::nop(), 1);
    EXPECT_EQ(r.submit(), -EBADFD);
    EXPECT_EQ(r.unsubmitted(), 1U);
    std::thread owner{[&] {
        EXPECT_EQ(r.enable(), 0);
        EXPECT_EQ(r.enable(), -EBADFD); // it is
        EXPECT_EQ(r.submit_and_wait(1), 1);
        EXPECT_EQ(next(r).user_data, 1U);
        queue(r, prep::nop(), 2);
    }};
    owner.join();
    if ((r.setup_flags() & setup::single_issuer) != 0) {
        EXPECT_EQ(r.submit(), -EEXIST);
    }
}

TEST_F(ring_on_io_uring, an_enabled_ring_cannot_be_enabled) {
    ring r;
    EXPECT_EQ(r.enable(), -EBADFD);
}

TEST_F(ring_on_io_uring, without_single_issuer_threads_may_take_turns) {
    ring_options options;
    options.setup_flags &= ~(setup::single_issuer);
    ring r{options};
    EXPECT_EQ(r.setup_flags() & setup::defer_taskrun, 0U);
    ASSERT_EQ(run(r, prep::nop()), 0); // attaches this thread
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

// A registered index means something else in every thread. A thread whose first registered ring has
// the index that the ring below has in another thread must still enter the right one.
TEST_F(ring_on_io_uring, a_registered_index_is_not_mistaken_for_another_threads) {
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

TEST_F(ring_on_io_uring, more_rings_than_a_thread_can_register_all_work) {
    std::vector<std::unique_ptr<ring>> rings;
    for (int i = 0; i < 40; ++i)
        rings.push_back(std::make_unique<ring>(8));
    for (int round = 0; round < 3; ++round)
        for (auto& r : rings)
            ASSERT_EQ(run(*r, prep::nop()), 0);
    // Indices of destroyed rings are free for the next.
    for (int i = 0; i < 100; ++i) {
        ring r{8};
        ASSERT_EQ(run(r, prep::nop()), 0);
    }
}

// Whether the ring that held the pipe's only writing end is gone, seen by the reader.
bool hangs_up(int fd, int milliseconds) {
    ::pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, milliseconds) == 1 && (p.revents & POLLHUP) != 0;
}

TEST_F(ring_on_io_uring, a_detached_ring_is_gone_when_another_thread_destroys_it) {
    for (const bool detach : {true, false}) {
        pipe_pair p;
        std::unique_ptr<ring> r;
        std::atomic<int> stage{0};
        std::thread owner{[&] {
            r = std::make_unique<ring>(8);
            int fd = p.out;
            ASSERT_EQ(r->get_kernel().control(register_op::files, &fd, 1), 0);
            ASSERT_EQ(run(*r, prep::nop()), 0);
            if (detach)
                r->detach_thread();
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

TEST_F(ring_on_io_uring, only_the_attached_thread_takes_the_shortcut) {
    ring_options options;
    options.start_disabled = true;
    ring r{options};
    const kernel::shortcut& direct = r.get_kernel().direct();
    EXPECT_EQ(direct.thread, 0U);
    std::uint64_t first = 0;
    std::thread{[&] {
        ASSERT_EQ(r.enable(), 0);
        EXPECT_EQ(direct.thread, 0U);
        ASSERT_EQ(run(r, prep::nop()), 0);
        first = direct.thread;
        EXPECT_EQ(first, coil::uring::detail::thread_number);
        r.detach_thread();
        EXPECT_EQ(direct.thread, 0U);
        ASSERT_EQ(run(r, prep::nop()), 0);
        EXPECT_EQ(direct.thread, 0U);
        r.attach_thread();
        EXPECT_EQ(direct.thread, first);
    }}.join();
    EXPECT_EQ(direct.thread, first);
    EXPECT_NE(first, 0U);
    std::thread{[&] {
        ring own{8};
        ASSERT_EQ(run(own, prep::nop()), 0);
        EXPECT_NE(own.get_kernel().direct().thread, first);
    }}.join();
}

TEST_F(ring_on_io_uring, attaching_and_detaching_change_nothing_but_speed) {
    ring r{8};
    for (int i = 0; i < 5; ++i) {
        r.attach_thread();
        ASSERT_EQ(run(r, prep::nop()), 0);
        r.attach_thread();
        r.detach_thread();
        r.detach_thread();
        ASSERT_EQ(run(r, prep::nop()), 0);
    }
    std::thread{[&] { r.detach_thread(); }}.join();
    ASSERT_EQ(run(r, prep::nop()), 0);
}

// Plain memory handed from thread to thread by a message: ThreadSanitizer must accept it too.
TEST_F(ring_on_io_uring, what_was_written_before_a_message_is_seen_after_it) {
    struct letter {
        int number = 0;
    };
    ring_options options;
    options.start_disabled = true;
    ring target{options};
    ring source{8};
    COIL_NEEDS(source, msg_ring);
    constexpr int count = 200;
    std::vector<letter> letters(count);
    std::atomic<bool> ready{false};
    std::thread reader{[&] {
        ASSERT_EQ(target.enable(), 0);
        ready = true;
        ready.notify_one();
        for (int i = 0; i < count; ++i) {
            const cqe c = next(target);
            ASSERT_EQ(c.res, i);
            ASSERT_EQ(reinterpret_cast<letter*>(c.user_data)->number, i * i);
        }
    }};
    ready.wait(false);
    for (int i = 0; i < count; ++i) {
        letter& l = letters[static_cast<std::size_t>(i)];
        l.number = i * i;
        const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&l));
        ASSERT_EQ(run(source, prep::msg_ring(target.native_handle(), static_cast<unsigned>(i),
                                             address)),
                  0);
    }
    reader.join();
}

} // namespace
} // namespace uring_test
