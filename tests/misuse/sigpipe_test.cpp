// Writing to a pipe without a reader.

#include "support/run.hpp"

#include <cerrno>

using namespace coil;

namespace {

TEST(Sigpipe, AWriteToAPipeWithoutAReaderGivesAnError) {
    run([]() -> task<> {
        int ends[2] = {};
        static_cast<void>((co_await io::pipe(ends)).value());
        co_await io::close(ends[0]);
        EXPECT_EQ(co_await io::write(ends[1], "x"), -EPIPE); // the program continues
        co_await io::close(ends[1]);
    }());
}

} // namespace
