// Stop tokens from outside: std::stop_token and inplace_stop_token passed to spawn, co_spawn, run
// and with_stop_token.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <list>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>

#include <poll.h>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::pipe_pair;
using coil_test::run_on;

namespace {

/// Runs each test with both kinds of token.
template <class Source>
class WithStopToken : public ::testing::Test {};
using sources = testing::Types<std::stop_source, inplace_stop_source>;
TYPED_TEST_SUITE(WithStopToken, sources);

task<int> waits(int fd) {
    char c;
    co_return co_await io::read(fd, {&c, 1});
}

TYPED_TEST(WithStopToken, G9_RequestedFromAnotherThread) {
    const pipe_pair p;
    for (int i = 0; i < coil_test::rounds(20, 500); ++i) {
        TypeParam source;
        std::thread other([&, i] {
            std::this_thread::sleep_for(i * 20us);
            source.request_stop();
        });
        EXPECT_EQ(coil::run(waits(p.in), source.get_token()), -ECANCELED);
        other.join();
    }
}

TYPED_TEST(WithStopToken, RequestedBefore_TheTaskRunsAndItsAwaitsAreCancelled) {
    TypeParam source;
    source.request_stop();
    int ran = 0;
    auto work = [](int& count) -> task<int> {
        ++count;
        const inplace_stop_token token = co_await this_task::stop_token();
        EXPECT_TRUE(token.stop_requested());
        co_return co_await io::nop();
    };
    EXPECT_EQ(coil::run(work(ran), source.get_token()), -ECANCELED);
    io_context ctx;
    EXPECT_EQ(run_on(ctx, with_stop_token(work(ran), source.get_token())), -ECANCELED);
    auto h = ctx.spawn(work(ran), source.get_token());
    ctx.run();
    EXPECT_EQ(h.get(), -ECANCELED);
    EXPECT_EQ(ran, 3);
}

TYPED_TEST(WithStopToken, RequestedAfterwards_MeansNothing) {
    const pipe_pair p;
    p.put("x");
    TypeParam source;
    EXPECT_EQ(coil::run(waits(p.in), source.get_token()), 1);
    source.request_stop();
}

TYPED_TEST(WithStopToken, AtEveryEdge) {
    const pipe_pair p;
    TypeParam source;
    io_context ctx;
    int cancelled = 0;
    auto counts = [](int fd, int& count) -> task<> { count += co_await waits(fd) == -ECANCELED; };
    auto main = [&]() -> task<> {
        co_spawn(counts(p.in, cancelled), source.get_token());
        auto h = spawn(waits(p.in), source.get_token());
        auto inner = spawn(with_stop_token(waits(p.in), source.get_token()));
        co_await io::nop();
        source.request_stop();
        cancelled += co_await h == -ECANCELED;
        cancelled += co_await inner == -ECANCELED;
        cancelled += co_await with_stop_token(waits(p.in), source.get_token()) == -ECANCELED;
        EXPECT_EQ(co_await io::nop(), 0); // other tasks are not stopped
    };
    ctx.co_spawn(main());
    ctx.co_spawn(counts(p.in, cancelled), source.get_token());
    auto h = ctx.spawn(waits(p.in), source.get_token());
    ctx.run();
    EXPECT_EQ(h.get(), -ECANCELED);
    EXPECT_EQ(cancelled, 5);
}

TYPED_TEST(WithStopToken, TheParentsTokenStopsIt_Too) {
    const pipe_pair p;
    TypeParam never;
    auto parent = [](int fd, auto token) -> task<int> {
        co_return co_await with_stop_token(with_stop_token(waits(fd), token), token);
    };
    auto main = [&]() -> task<> {
        auto h = spawn(parent(p.in, never.get_token()));
        co_await io::nop();
        h.cancel();
        EXPECT_EQ(co_await h, -ECANCELED);
        auto empty = spawn(with_stop_token(waits(p.in), decltype(never.get_token())()));
        co_await io::nop();
        empty.cancel();
        EXPECT_EQ(co_await empty, -ECANCELED); // a token without a source
    };
    coil::run(main());
}

TYPED_TEST(WithStopToken, EachFurtherAwaitIsCancelled) {
    const pipe_pair p;
    auto work = [](const pipe_pair& pipe) -> task<> {
        char c;
        EXPECT_EQ(co_await io::read(pipe.in, {&c, 1}), -ECANCELED);
        EXPECT_EQ(co_await io::nop(), -ECANCELED);
        EXPECT_EQ(co_await (io::nop() && io::nop()), -ECANCELED);
        EXPECT_EQ(co_await hard_link(io::nop(), io::write(pipe.out, "no")), -ECANCELED);
        EXPECT_EQ(co_await timeout(io::nop(), 1h), -ECANCELED);
        EXPECT_EQ(co_await io::drain(io::nop()), -ECANCELED);
        EXPECT_EQ(co_await io::force_async(io::nop()), -ECANCELED);
        EXPECT_EQ(co_await io::send_zc(pipe.out, "x"), -ECANCELED);
        EXPECT_EQ(co_await io::cancel_all(), -ECANCELED);
        EXPECT_EQ(co_await sleep_for(1h), -ECANCELED);
        auto pending = eager(io::read(pipe.in, {&c, 1}));
        EXPECT_EQ(co_await pending, -ECANCELED);
        auto other = eager(io::read(pipe.in, {&c, 1}));
        EXPECT_EQ(co_await io::cancel(other), -ECANCELED);
        auto stream = io::poll_multishot(pipe.in, POLLIN);
        EXPECT_EQ(co_await stream.next(), -ECANCELED);
        EXPECT_EQ(co_await io::socket_direct(1, 1), -ECANCELED);
        auto child = [](int fd) -> task<int> { co_return co_await waits(fd); };
        EXPECT_EQ(co_await child(pipe.in), -ECANCELED);
        co_await yield(); // ignores the token
    };
    TypeParam source;
    auto main = [&]() -> task<> {
        auto h = spawn(work(p), source.get_token());
        co_await io::nop();
        source.request_stop();
        co_await h;
    };
    coil::run(main());
}

struct move_only {
    explicit move_only(int n) : value(n) {}
    move_only(move_only&&) = default;
    int value;
};

TYPED_TEST(WithStopToken, G12_ResultsAndExceptionsComeThrough) {
    TypeParam source;
    auto throws = []() -> task<> {
        co_await io::nop();
        throw std::runtime_error("through");
    };
    EXPECT_THROW(coil::run(throws(), source.get_token()), std::runtime_error);
    auto gives = []() -> task<move_only> { co_return move_only(7); };
    EXPECT_EQ(coil::run(gives(), source.get_token()).value, 7);
    static int global = 3;
    auto refers = []() -> task<int&> { co_return global; };
    EXPECT_EQ(&coil::run(refers(), source.get_token()), &global);
    int unhandled = 0;
    io_context ctx(coil_test::with(
        [&](auto& o) { o.on_unhandled_exception = [&](const auto&) { ++unhandled; }; }));
    ctx.co_spawn(throws(), source.get_token());
    ctx.run();
    EXPECT_EQ(unhandled, 1);
}

TYPED_TEST(WithStopToken, G5_DestroyedWhileItWaits) {
    const pipe_pair p;
    TypeParam source;
    int destroyed = 0;
    bool went_on = false;
    {
        io_context ctx;
        auto stops = []() -> task<> {
            co_await io::nop();
            this_context().stop();
        };
        ctx.co_spawn(stops());
        auto nested = [](int fd, auto token, coil_test::on_destruction, bool& after) -> task<> {
            co_await with_stop_token(waits(fd), token);
            after = true;
        };
        ctx.co_spawn(
            nested(p.in, source.get_token(), coil_test::on_destruction(destroyed), went_on),
            source.get_token());
        ctx.run();
        EXPECT_EQ(destroyed, 1);
    }
    { // never started
        io_context ctx;
        [[maybe_unused]] auto h = ctx.spawn(waits(p.in), source.get_token());
    }
    source.request_stop(); // no task is left
    EXPECT_FALSE(went_on);
    p.put("left");
    char buf[8];
    EXPECT_EQ(::read(p.in, buf, sizeof buf), 4); // no read is left, either
}

TYPED_TEST(WithStopToken, G9_AStopThatRacesWithTheEnd) {
    io_context ctx;
    auto work = []() -> task<int> {
        for (int i = 0; i < 3; ++i) {
            if (const int r = co_await io::nop(); r < 0) {
                co_return r;
            }
        }
        co_return 0;
    };
    for (int i = 0; i < coil_test::rounds(300, 20'000); ++i) {
        TypeParam source;
        auto main = [&]() -> task<> {
            std::thread other([&] { source.request_stop(); });
            const int r = co_await with_stop_token(work(), source.get_token());
            EXPECT_TRUE(r == 0 || r == -ECANCELED) << r;
            other.join();
        };
        run_on(ctx, main());
    }
}

TEST(WithStopTokenOfJthread, TheSourceMayEndFirst) {
    const pipe_pair p;
    std::jthread worker(
        [&](const std::stop_token& stop) { EXPECT_EQ(coil::run(waits(p.in), stop), -ECANCELED); });
    worker.request_stop();
    worker.join();
    std::optional<std::stop_source> source(std::in_place);
    const std::stop_token token = source->get_token();
    source.reset(); // no stop can be requested any more
    p.put("x");
    EXPECT_EQ(coil::run(waits(p.in), token), 1);
}

TYPED_TEST(WithStopToken, OperationsChainsAndOtherAwaitables) {
    const pipe_pair p;
    TypeParam source;
    coil::run([](const pipe_pair& pipe, TypeParam& stops) -> task<> {
        char buf[8];
        // not stopped
        pipe.put("ab");
        EXPECT_EQ(co_await with_stop_token(io::read(pipe.in, buf), stops.get_token()), 2);
        auto later = with_stop_token(sleep_for(1ms), stops.get_token());
        EXPECT_EQ(co_await std::move(later), 0);
        mutex m;
        {
            auto held = co_await with_stop_token(m.lock_guard(), stops.get_token());
        }
        // stopped
        auto asks = [](TypeParam& s) -> task<> {
            co_await sleep_for(1ms);
            s.request_stop();
        };
        co_spawn(asks(stops));
        const auto begin = std::chrono::steady_clock::now();
        EXPECT_EQ(co_await with_stop_token(io::read(pipe.in, buf), stops.get_token()), -ECANCELED);
        EXPECT_EQ(co_await with_stop_token(io::nop() && io::read(pipe.in, buf), stops.get_token()),
                  -ECANCELED);
        EXPECT_EQ(co_await with_stop_token(timeout(io::read(pipe.in, buf), 1h), stops.get_token()),
                  -ECANCELED);
        auto pending = eager(io::read(pipe.in, buf));
        EXPECT_EQ(co_await with_stop_token(pending, stops.get_token()), -ECANCELED);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
        // the awaiting task itself was not stopped
        pipe.put("c");
        EXPECT_EQ(co_await io::read(pipe.in, buf), 1);
    }(p, source));
}

TYPED_TEST(WithStopToken, AJoinEnds_AndItsTaskContinues) {
    const pipe_pair p;
    TypeParam source;
    auto stops = [](TypeParam& it) -> task<> {
        it.request_stop();
        co_return;
    };
    auto main = [&]() -> task<> {
        auto h = spawn(waits(p.in));
        co_spawn(stops(source));
        try {
            co_await with_stop_token(h, source.get_token());
            ADD_FAILURE() << "the join was not stopped";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        EXPECT_FALSE(h.done());
        EXPECT_THROW(co_await with_stop_token(h, source.get_token()), std::system_error)
            << "it was requested before";
        p.put("x");
        TypeParam never;
        EXPECT_EQ(co_await with_stop_token(h, never.get_token()), 1) << "it is joined later";
    };
    coil::run(main());
}

TYPED_TEST(WithStopToken, AJoinOfATemporaryHandle_StopsItsTask) {
    const pipe_pair p;
    int result = 0;
    auto notes = [](int fd, int& to) -> task<> { to = co_await waits(fd); };
    auto main = [&]() -> task<> {
        TypeParam source;
        source.request_stop();
        EXPECT_THROW(co_await with_stop_token(spawn(notes(p.in, result)), source.get_token()),
                     std::system_error);
        while (result == 0) {
            co_await yield();
        }
    };
    coil::run(main());
    EXPECT_EQ(result, -ECANCELED);
}

TYPED_TEST(WithStopToken, AJoinOfAnotherContext_AtAnyTime) {
    for (int i = 0; i < coil_test::rounds(50, 1000); ++i) {
        io_context other;
        other.start();
        TypeParam source;
        std::thread stopper([&] { source.request_stop(); });
        auto main = [&]() -> task<> {
            auto h = other.spawn([]() -> task<int> { co_return 7; }());
            bool is_stopped = false;
            try {
                EXPECT_EQ(co_await with_stop_token(h, source.get_token()), 7);
            } catch (const std::system_error& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
                is_stopped = true;
            }
            if (is_stopped) {
                EXPECT_EQ(co_await h, 7);
            }
        };
        coil::run(main());
        stopper.join();
    }
}

// A frame that is destroyed while it joins.
TYPED_TEST(WithStopToken, AJoinThatAShutdownDestroys) {
    const pipe_pair p;
    TypeParam source;
    io_context other;
    other.start();
    auto h = other.spawn(waits(p.in));
    {
        io_context ctx;
        ctx.co_spawn([](join_handle<int>& joined, auto token) -> task<> {
            co_await with_stop_token(joined, token);
        }(h, source.get_token()));
        ctx.co_spawn([](io_context& it) -> task<> {
            it.stop();
            co_return;
        }(ctx));
        ctx.run();
    }
    p.put("x");
    EXPECT_EQ(h.get(), 1);
}

} // namespace
