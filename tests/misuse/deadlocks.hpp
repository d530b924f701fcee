#pragma once

#include "support/run.hpp"

#include <functional>
#include <string>

// Shared by the tests of the detection of deadlocks.

namespace coil_test {

inline coil::task<> locks_twice(coil::mutex& m) {
    co_await m.lock();
    co_await m.lock();
}
inline coil::task<> receives(coil::channel<int>& c) { co_await c.recv(); }

/// The options of a context, `running`, that stops at a report, which is appended to `text`.
inline coil::io_context_options stopped_by_report(std::string& text, coil::io_context*& running) {
    coil::io_context_options options;
    options.on_deadlock = [&](const std::string& report) {
        text += report;
        running->stop();
    };
    return options;
}

/// The base of tests of the detection of deadlocks.
class deadlock_test : public testing::Test {
protected:
    void SetUp() override {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
        GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
#endif
#endif
    }

    /// Runs `begin` in a context that stops at the first report, and returns the reports.
    static std::string reported(const std::function<void(coil::io_context&)>& begin) {
        std::string text;
        coil::io_context* running = nullptr;
        coil::io_context ctx(stopped_by_report(text, running));
        running = &ctx;
        begin(ctx);
        ctx.run();
        return text;
    }
};

} // namespace coil_test
