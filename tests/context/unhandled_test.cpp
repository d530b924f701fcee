// An exception that leaves a detached task is reported and counted, and the context continues.

#include "support/descriptors.hpp"
#include "support/run.hpp"

#include <stdexcept>
#include <string>
#include <vector>

using namespace coil;
using namespace std::chrono_literals;

namespace {

class Unhandled : public ::testing::Test {};

task<> throws_text(const char* text) {
    co_await yield();
    throw std::runtime_error(text);
}
task<> throws_int() {
    throw 7;
    co_return;
}
task<> counts(int& n) {
    for (int i = 0; i < 10; ++i) {
        co_await yield();
        ++n;
    }
}

TEST_F(Unhandled, G12_GoesToTheHandlerAndIsCounted) {
    std::vector<std::string> got;
    io_context ctx(coil_test::with([&](auto& o) {
        o.on_unhandled_exception = [&](std::exception_ptr e) {
            try {
                std::rethrow_exception(e);
            } catch (const std::exception& x) {
                got.emplace_back(x.what());
            } catch (...) {
                got.emplace_back("unknown");
            }
        };
    }));
    int n = 0;
    ctx.co_spawn(throws_text("one"));
    ctx.co_spawn(counts(n));
    ctx.co_spawn(throws_int());
    ctx.co_spawn(throws_text("two"));
    ctx.run();
    EXPECT_EQ(got, (std::vector<std::string>{"unknown", "one", "two"}));
    EXPECT_EQ(ctx.metrics().unhandled_exceptions, 3U);
    EXPECT_EQ(n, 10); // the other tasks continued
}

// mistake 12: an exception leaves a task that was started with co_spawn
// shows: a line on stderr with the task, the context and the exception
TEST_F(Unhandled, G12_WithoutAHandlerALineOnStderrNamesContextAndError) {
    io_context ctx(coil_test::with([](auto& o) { o.name = "front"; }));
    testing::internal::CaptureStderr();
    ctx.co_spawn(throws_text("lost cause"));
    ctx.co_spawn(throws_int());
    ctx.run();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("front"), std::string::npos) << said;
    EXPECT_NE(said.find("lost cause"), std::string::npos) << said;
    EXPECT_NE(said.find("unknown type"), std::string::npos) << said;
}

TEST_F(Unhandled, G12_LocalsAreDestroyed) {
    int destroyed = 0;
    io_context ctx(
        coil_test::with([](auto& o) { o.on_unhandled_exception = [](std::exception_ptr) {}; }));
    auto fail = [](coil_test::on_destruction) -> task<> {
        co_await yield();
        throw 1;
    };
    ctx.co_spawn(fail(coil_test::on_destruction(destroyed)));
    ctx.run();
    EXPECT_EQ(destroyed, 1);
}

TEST_F(Unhandled, TheHandlerMaySpawn) {
    int n = 0;
    io_context* self = nullptr;
    io_context ctx(coil_test::with([&](auto& o) {
        o.on_unhandled_exception = [&](std::exception_ptr) { self->co_spawn(counts(n)); };
    }));
    self = &ctx;
    ctx.co_spawn(throws_text("x"));
    ctx.run();
    EXPECT_EQ(n, 10);
}

#if COIL_ASSERTIONS
constexpr bool says_where = true;
#else
constexpr bool says_where = false;
#endif

/// Expects one line that names the function and, in builds with assertions, the line of the spawn.
void expect_origin(const std::string& said, const std::string& function, unsigned line) {
    EXPECT_NE(said.find(function), std::string::npos) << said;
    const std::string place = std::string("spawned at ") + __FILE__ + ":" + std::to_string(line);
    EXPECT_EQ(said.find(place) != std::string::npos, says_where) << said;
    EXPECT_EQ(said.find("spawned at") != std::string::npos, says_where) << said;
}

// mistake 12: an exception leaves a task without a name
// shows: its function, and in debug builds the file and line of its spawn
TEST_F(Unhandled, G12_TheReportOfAnUnnamedTaskNamesItsFunctionAndSpawn) {
    io_context ctx;
    const auto printed = [&] {
        ctx.run();
        return testing::internal::GetCapturedStderr();
    };
    testing::internal::CaptureStderr();
    ctx.co_spawn(throws_int());
    expect_origin(printed(), "throws_int()", __LINE__ - 1);

    testing::internal::CaptureStderr();
    static_cast<void>(ctx.spawn(throws_int()));
    expect_origin(printed(), "throws_int()", __LINE__ - 1);

    testing::internal::CaptureStderr();
    ctx.co_spawn([]() -> task<> {
        co_spawn(throws_int());
        static_cast<void>(spawn(throws_text("lost cause")));
        co_return;
    });
    const std::string both = printed();
    const auto end = both.find('\n');
    expect_origin(both.substr(0, end), "throws_int()", __LINE__ - 6);
    expect_origin(both.substr(end + 1), "throws_text(char const*)", __LINE__ - 6);

    inplace_stop_source source;
    testing::internal::CaptureStderr();
    ctx.co_spawn(throws_int(), source.get_token());
    expect_origin(printed(), "with_stop_token", __LINE__ - 1);
}

TEST_F(Unhandled, G12_TheReportForAHandleDroppedLaterNamesTheSame) {
    io_context ctx;
    testing::internal::CaptureStderr();
    {
        const auto handle = ctx.spawn(throws_int());
        ctx.run();
        EXPECT_TRUE(handle.done());
    }
    expect_origin(testing::internal::GetCapturedStderr(), "throws_int()", __LINE__ - 4);
}

TEST_F(Unhandled, TheReportOfAPostedFunctionNamesNoPlaceInTheLibrary) {
    io_context ctx;
    testing::internal::CaptureStderr();
    ctx.post([] { throw 7; });
    ctx.run();
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("spawned at"), std::string::npos);
}

} // namespace
