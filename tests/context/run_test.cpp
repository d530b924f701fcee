// coil::run: runs one task, returns its value or throws its exception, and ends everything else.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>

using namespace coil;
using namespace std::chrono_literals;
using coil_test::on_destruction;

namespace {

class Run : public ::testing::Test {};

TEST_F(Run, ReturnsTheValue) {
    auto answer = []() -> task<int> { co_return 42; };
    EXPECT_EQ(coil::run(answer()), 42);
}

TEST_F(Run, RunsATaskOfVoid) {
    bool ran = false;
    auto mark = [](bool& flag) -> task<> {
        co_await yield();
        flag = true;
    };
    coil::run(mark(ran));
    EXPECT_TRUE(ran);
}

TEST_F(Run, ReturnsReferencesAndMoveOnlyValues) {
    int target = 0;
    auto refer = [](int& t) -> task<int&> { co_return t; };
    EXPECT_EQ(&coil::run(refer(target)), &target);
    auto make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
    EXPECT_EQ(*coil::run(make()), 4);
}

TEST_F(Run, G12_ThrowsWhatTheTaskThrew) {
    auto fail = []() -> task<int> {
        co_await yield();
        throw std::runtime_error("main failed");
    };
    try {
        coil::run(fail());
        FAIL() << "did not throw";
    } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "main failed");
    }
}

TEST_F(Run, G5_StopsAllOtherTasks) {
    int destroyed = 0;
    auto forever = [](on_destruction) -> task<> { co_await sleep_for(24h); };
    auto main = [](auto f, int& count) -> task<> {
        coil::co_spawn(f(on_destruction(count)));
        coil::co_spawn(f(on_destruction(count)));
        co_await yield();
    };
    coil::run(main(forever, destroyed));
    EXPECT_EQ(destroyed, 2);
}

TEST_F(Run, G5_AnExceptionStopsAllOtherTasks) {
    int destroyed = 0;
    auto forever = [](on_destruction) -> task<> { co_await sleep_for(24h); };
    auto main = [](auto f, int& count) -> task<> {
        coil::co_spawn(f(on_destruction(count)));
        co_await yield();
        throw std::runtime_error("x");
    };
    EXPECT_THROW(coil::run(main(forever, destroyed)), std::runtime_error);
    EXPECT_EQ(destroyed, 1);
}

TEST_F(Run, ThrowsIfTheTaskStopsTheContext) {
    auto main = []() -> task<int> {
        this_context().stop();
        co_await sleep_for(24h);
        co_return 1;
    };
    try {
        coil::run(main());
        FAIL() << "did not throw";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

TEST_F(Run, TakesOptions) {
    auto name = []() -> task<std::string> { co_return this_context().options().name; };
    EXPECT_EQ(coil::run(name(), coil_test::with([](auto& o) { o.name = "mine"; })), "mine");
}

// mistake 10: `coil::run()` inside of a task
// shows: an exception with `std::errc::resource_deadlock_would_occur`
TEST_F(Run, InsideOfATaskWouldBlockTheContext_Throws) {
    auto inner = [](bool& began) -> task<int> {
        began = true;
        co_return 3;
    };
    auto outer = [](auto f) -> task<int> {
        bool began = false;
        try {
            coil::run(f(began));
            ADD_FAILURE() << "did not throw";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
            EXPECT_NE(std::string(e.what()).find("coil: run() would block a context's thread"),
                      std::string::npos)
                << e.what();
        }
        EXPECT_FALSE(began);
        inplace_stop_source source;
        EXPECT_THROW(coil::run(f(began), source.get_token()), std::system_error);
        EXPECT_FALSE(began);
        co_return co_await f(began);
    };
    EXPECT_EQ(coil::run(outer(inner)), 3);
}

TEST_F(Run, OfAnotherContextMayBeNestedInATask) {
    io_context other;
    auto outer = [](io_context& inner) -> task<int> {
        io_context* const mine = &this_context();
        auto n = inner.spawn([]() -> task<int> {
            co_await sleep_for(1ms);
            co_return 3;
        });
        inner.run();
        EXPECT_EQ(&this_context(), mine);
        co_await sleep_for(1ms);
        co_return n.get();
    };
    EXPECT_EQ(coil::run(outer(other)), 3);
}

TEST_F(Run, TwiceOnOneThread) {
    auto nap = []() -> task<int> { co_return co_await sleep_for(1ms); };
    EXPECT_EQ(coil::run(nap()), 0);
    EXPECT_EQ(coil::run(nap()), 0);
}

TEST(RunDeathTest, AwaitingWithoutAContextTerminatesWithAMessage) {
    auto nap = []() -> coil_test::manual { co_await sleep_for(1ms); };
    EXPECT_DEATH(nap().start(), "outside of an io_context");
    auto other = []() -> coil_test::manual { co_await io::nop(); };
    EXPECT_DEATH(other().start(), "outside of an io_context");
    EXPECT_DEATH(this_context(), "outside of an io_context");
}

/// A task that joins the thread on which it runs.
TEST(Join, InATaskOfTheContextThrows) {
    io_context ctx;
    ctx.start();
    auto joins = ctx.spawn([](io_context& own) -> task<std::string> {
        try {
            own.join();
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
            co_return e.what();
        }
        co_return "";
    }(ctx));
    const std::string said = joins.get();
    EXPECT_EQ(said.find("coil: io_context::join() in a task of this context"), 0U) << said;
    ctx.join();
}

} // namespace
