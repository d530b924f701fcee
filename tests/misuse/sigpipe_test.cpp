// Writing to a pipe without a reader.

#include "support/run.hpp"

#include <cerrno>
#include <system_error>

#include <unistd.h>

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

/// A pipe whose reader has gone.
pipe_end without_a_reader() { return make_pipe().second; }

TEST(Sigpipe, NoCallThatWritesToAPipeRaisesIt) {
    run([]() -> task<> {
        pipe_end out = without_a_reader();
        const const_buffer parts[] = {"x", "y"};
        EXPECT_EQ(co_await out.write_some("x"), -EPIPE);
        EXPECT_EQ(co_await out.writev_some(parts), -EPIPE);
        EXPECT_EQ(co_await write_all(out, "x"), -EPIPE);
        EXPECT_EQ(co_await writev_all(out, parts), -EPIPE);
        buffered_writer buffered{out};
        EXPECT_EQ(co_await buffered.write("x"), 1);
        EXPECT_EQ(co_await buffered.flush(), -EPIPE);
        fs::file as_a_file(out.release());
        EXPECT_EQ(co_await as_a_file.write("x"), -EPIPE);
        EXPECT_EQ(co_await as_a_file.write_all("x"), -EPIPE);
        EXPECT_EQ(co_await as_a_file.writev_some(parts), -EPIPE);
        EXPECT_EQ(co_await blocking(
                      [&] { return ::write(as_a_file.native_handle(), "x", 1) < 0 ? -errno : 0; }),
                  -EPIPE);
    }());
}

TEST(Sigpipe, ACopyToAPipeWithoutAReaderFails) {
    run([]() -> task<> {
        auto [in, source] = make_pipe();
        pipe_end out = without_a_reader();
        EXPECT_EQ(co_await source.write_some("text"), 4);
        EXPECT_EQ(co_await source.close(), 0);
        int error = 0;
        try {
            co_await copy(in, out);
        } catch (const std::system_error& e) {
            error = e.code().value();
        }
        EXPECT_EQ(error, EPIPE);
    }());
}

} // namespace
