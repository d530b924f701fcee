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
    EXPECT_EQ(n, 10) << "the others went on";
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

} // namespace
