// Mistakes in running: run() inside of a task, a pipe without a reader.

#include "support/run.hpp"

#include <cerrno>
#include <system_error>

using namespace coil;

namespace {

task<> nothing() { co_return; }

TEST(RunMisuse, InsideOfATask) {
    run([]() -> task<> {
        try {
            run(nothing());
            ADD_FAILURE() << "blocked the thread of its context";
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::resource_deadlock_would_occur);
            EXPECT_NE(std::string_view(e.what()).find("co_await the task"), std::string_view::npos);
        }
        co_return;
    }());
}

TEST(Sigpipe, AWriteToAPipeWithoutAReaderGivesAnError) {
    run([]() -> task<> {
        int ends[2] = {};
        static_cast<void>((co_await io::pipe(ends)).value());
        co_await io::close(ends[0]);
        EXPECT_EQ(co_await io::write(ends[1], "x"), -EPIPE); // and the program goes on
        co_await io::close(ends[1]);
    }());
}

} // namespace
