// io::drain, a barrier enforced by the context, and io::force_async.

#include "io/support.hpp"
#include "support/backends.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::door_backend;
using coil_test::pipe_pair;
using coil_test::run_on;
using coil_test::socket_pair;
using coil_test::sqe;

namespace {

class Modifiers : public ::testing::Test {};

/// Records the name of an operation when it completes.
template <class Op>
task<> note(std::string& log, char name, Op op) {
    co_await std::move(op);
    log += name;
}

TEST_F(Modifiers, DrainWaitsForEarlierOperations_LaterOnesWaitForIt) {
    const pipe_pair p;
    const pipe_pair q;
    auto main = [](const pipe_pair& first, const pipe_pair& alone) -> task<> {
        char buf[4];
        std::string log;
        auto a = spawn(note(log, 'a', io::read(first.in, {buf, 1})));
        auto b = spawn(note(log, 'b', io::nop()));
        auto barrier = spawn(note(log, 'D', io::drain(io::read(alone.in, {buf + 1, 1}))));
        auto c = spawn(note(log, 'c', io::nop()));
        auto second = spawn(note(log, 'E', io::drain(io::nop())));
        auto d = spawn(note(log, 'd', io::nop()));
        co_await b;
        co_await sleep_for(3ms); // sleeps are not ring operations
        EXPECT_EQ(log, "b");
        first.put("x");
        co_await a;
        co_await sleep_for(3ms);
        EXPECT_EQ(log, "ba");
        alone.put("x");
        co_await d;
        EXPECT_EQ(log, "baDcEd");
        co_await barrier;
        co_await c;
        co_await second;
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main(p, q));
}

TEST_F(Modifiers, G3_DrainIsCancelledOrDroppedWhileItWaits_AndWhileItRuns) {
    const pipe_pair p;
    const pipe_pair q;
    auto main = [](const pipe_pair& before, const pipe_pair& alone) -> task<> {
        char buf[4];
        auto reads = eager(io::read(before.in, {buf, 1}));
        auto waiting = eager(io::drain(io::nop()));
        auto behind = eager(io::nop());
        co_await sleep_for(1ms);
        EXPECT_FALSE(waiting.is_complete() || behind.is_complete());
        {
            const auto dropped = eager(io::drain(io::nop()));
        }
        waiting.cancel();
        EXPECT_EQ(co_await waiting, -ECANCELED);
        EXPECT_EQ(co_await behind, 0); // no barrier is before it any more

        auto asked = eager(io::drain(io::nop()));
        EXPECT_EQ(co_await io::cancel(asked), 0);
        EXPECT_EQ(co_await asked, -ECANCELED);
        // A limit includes the wait.
        EXPECT_EQ(co_await io::drain(timeout(io::nop(), 1ms)), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::drain(io::nop()), 1ms), -ETIMEDOUT);
        reads.cancel();
        EXPECT_EQ(co_await reads, -ECANCELED);

        auto runs = eager(io::drain(io::read(alone.in, {buf, 1})));
        auto held = eager(io::nop());
        co_await sleep_for(1ms);
        EXPECT_FALSE(held.is_complete());
        EXPECT_EQ(co_await io::cancel(runs), 0); // is not held back by what it cancels
        EXPECT_EQ(co_await runs, -ECANCELED);
        EXPECT_EQ(co_await held, 0);
        {
            const auto dropped = eager(io::drain(io::read(alone.in, {buf, 1})));
        }
        EXPECT_EQ(co_await io::nop(), 0);
        EXPECT_EQ(co_await timeout(io::drain(io::read(alone.in, {buf, 1})), 1ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::nop(), 0);
    };
    coil::run(main(p, q));
}

TEST_F(Modifiers, DrainWithBackPressure) {
    io_context ctx(coil_test::with([](auto& o) {
        o.max_in_flight = 3;
        o.entries = 4;
    }));
    auto main = []() -> task<> {
        std::string log;
        std::vector<join_handle<>> all;
        for (int i = 0; i < 60; ++i) {
            const char name = static_cast<char>('A' + i);
            if (i % 5 == 4) {
                all.push_back(spawn(note(log, name, io::drain(io::nop()))));
            } else {
                all.push_back(spawn(note(log, name, io::force_async(io::nop()))));
            }
        }
        for (auto& each : all) {
            co_await each;
        }
        EXPECT_EQ(log.size(), 60U);
        for (std::size_t i = 4; i < 60; i += 5) { // each barrier completes at its position
            EXPECT_EQ(log.find(static_cast<char>('A' + i)), i) << log;
        }
    };
    run_on(ctx, main());
}

TEST_F(Modifiers, DrainDoesNotWaitForStreams) {
    const pipe_pair p;
    auto main = [](const pipe_pair& pipe) -> task<> {
        auto events = io::poll_multishot(pipe.in, POLLIN);
        EXPECT_EQ((co_await timeout(events.next(), 1ms)), -ETIMEDOUT);
        EXPECT_EQ(co_await io::drain(io::nop()), 0);
        pipe.put("x");
        EXPECT_EQ(co_await events.next(), static_cast<int>(POLLIN));
        EXPECT_EQ(co_await io::drain(io::nop()), 0);
    };
    coil::run(main(p));
}

TEST_F(Modifiers, G8_DrainInAContextThatSleeps) {
    const pipe_pair p;
    io_context ctx(coil_test::with([](auto& o) { o.idle = idle_policy::park(); }));
    auto main = [](const pipe_pair& pipe) -> task<> {
        char c;
        auto before = eager(io::read(pipe.in, {&c, 1}));
        EXPECT_EQ(co_await io::drain(io::nop()), 0);
        EXPECT_TRUE(before.is_complete());
    };
    std::chrono::nanoseconds used{};
    std::thread other([&] {
        std::this_thread::sleep_for(30ms);
        p.put("x");
    });
    const auto begin = coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID);
    run_on(ctx, main(p));
    used = coil_test::cpu_time(CLOCK_THREAD_CPUTIME_ID) - begin;
    other.join();
    if (!coil_test::sanitized) {
        EXPECT_LT(used, 10ms); // it did not sleep
    }
    EXPECT_LE(ctx.metrics().parks, 10U);
}

TEST_F(Modifiers, G5_StopWhileADrainWaitsAndWhileItRuns) {
    const pipe_pair p;
    for (const bool runs : {false, true}) {
        io_context ctx;
        auto main = [runs](int in) -> task<> {
            char c;
            char d;
            std::optional<eager_operation<operation::element_type>> before;
            if (!runs) {
                before.emplace(io::read(in, {&c, 1}));
            }
            auto barrier = eager(io::drain(io::read(in, {&d, 1})));
            auto behind = eager(io::nop());
            co_await sleep_for(1ms);
            this_context().stop();
            co_await behind;
        };
        ctx.co_spawn(main(p.in));
        ctx.run();
        EXPECT_EQ(run_on(ctx, io_test::await_one(io::nop())), 0); // nothing is held back later
    }
}

TEST_F(Modifiers, DrainNeverReachesTheKernel_ForceAsyncDoes) {
    auto guard = std::make_shared<door_backend::guard>();
    int forced = 0;
    guard->before_enter = [&](door_backend&, const std::vector<sqe>& entries, unsigned) {
        for (const sqe& e : entries) {
            EXPECT_EQ(e.flags & uring::sqe_flag::io_drain, 0);
            forced += (e.flags & uring::sqe_flag::async) != 0;
        }
        return 0;
    };
    io_context ctx(
        coil_test::with([&](auto& o) { o.make_backend = door_backend::factory(guard); }));
    auto main = []() -> task<> {
        EXPECT_EQ(co_await io::drain(io::force_async(io::nop())), 0);
        EXPECT_EQ(co_await io::force_async(io::drain(io::nop())), 0);
        EXPECT_EQ(co_await io::force_async(timeout(io::nop(), 1h)), 0);
        EXPECT_EQ(co_await io::force_async(io::nop() && io::nop()), 0);
        // force_async does not apply to a call that a timeout in a chain must be able to cancel.
        EXPECT_EQ(co_await (io::force_async(timeout(io::nop(), 1h)) && io::nop()), 0);
        EXPECT_EQ(co_await io::force_async(timeout(io::nop(), 1h) && io::nop()), 0);
    };
    run_on(ctx, main());
    EXPECT_EQ(forced, 6);
}

TEST_F(Modifiers, ForceAsyncGivesTheSameResults) {
    const pipe_pair p;
    const socket_pair s;
    auto main = [](const pipe_pair& pipe, const socket_pair& pair) -> task<> {
        char buf[16];
        EXPECT_EQ(co_await io::force_async(io::write(pipe.out, "abc")), 3);
        EXPECT_EQ(co_await io::force_async(io::read(pipe.in, buf)), 3);
        EXPECT_EQ(co_await io::force_async(io::read(-1, buf)), -EBADF);
        EXPECT_EQ(co_await io::force_async(timeout(io::read(pipe.in, buf), 2ms)), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::force_async(io::read(pipe.in, buf)), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await timeout(io::force_async(io::recv(pair.a, buf)), 2ms), -ETIMEDOUT);
        EXPECT_EQ(co_await io::force_async(io::send(pair.a, "x") && io::recv(pair.b, buf)), 1);
        EXPECT_EQ(co_await (io::force_async(io::send(pair.a, "x") && io::recv(pair.b, buf)) &&
                            io::write(pipe.out, "def") && io::force_async(io::read(pipe.in, buf))),
                  3);
        EXPECT_EQ(co_await (io::force_async(timeout(io::recv(pair.a, buf), 1ms)) && io::nop()),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await io::force_async(timeout(io::recv(pair.a, buf), 1ms) && io::nop()),
                  -ETIMEDOUT);
        EXPECT_EQ(co_await hard_link(io::force_async(io::read(-1, buf)), io::nop()), 0);
        EXPECT_EQ(co_await io::force_async(hard_link(io::read(-1, buf), io::nop())), 0);
        const int fd = co_await io::force_async(io::openat(AT_FDCWD, "/", O_RDONLY | O_CLOEXEC));
        EXPECT_GE(fd, 0);
        EXPECT_EQ(co_await io::force_async(io::fsync(fd) && io::close(fd)), 0);
        {
            const auto dropped = eager(io::force_async(io::openat(AT_FDCWD, "/", O_RDONLY)));
        }
        auto pending = eager(io::force_async(io::recv(pair.a, buf)));
        co_await sleep_for(1ms);
        pending.cancel();
        EXPECT_EQ(co_await pending, -ECANCELED);
    };
    coil::run(main(p, s));
}

} // namespace
