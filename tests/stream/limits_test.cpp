// The results of a buffered_reader and a buffered_writer on a timeout, a stop, a failure and the
// end: the rows of docs/guide/errors.md.

#include "stream/support.hpp"

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

using namespace coil;
using namespace std::chrono_literals;
using namespace stream_test;

namespace {

template <class Call>
task<std::errc> error_of(Call call) {
    try {
        static_cast<void>(co_await call());
    } catch (const std::system_error& e) {
        co_return static_cast<std::errc>(e.code().value());
    }
    co_return std::errc();
}

using reader = buffered_reader<net::socket&>;
using writer = buffered_writer<net::socket&>;

/// Runs a task that is asked to stop while it waits.
template <class T>
task<T> stopped(task<T> work) {
    auto handle = spawn(std::move(work));
    co_await sleep_for(5ms);
    handle.cancel();
    co_return co_await std::move(handle);
}

TEST(StreamLimits, OfReadUntilAndOfLinesThrow) {
    run([]() -> task<> {
        auto [here, there] = net::socket::pair();
        reader r{here};
        EXPECT_EQ(co_await there.send_all("part"), 4);
        auto lines = r.lines();
        const auto until = [&] { return timeout(r.read_until('\n'), 5ms); };
        const auto line = [&] { return timeout(lines.next(), 5ms); };
        EXPECT_EQ(co_await error_of(until), std::errc::timed_out);
        EXPECT_EQ(co_await error_of(line), std::errc::timed_out);
        const auto forever = [&] { return r.read_until('\n'); };
        const auto next = [&] { return lines.next(); };
        EXPECT_EQ(co_await stopped(error_of(forever)), std::errc::operation_canceled);
        EXPECT_EQ(co_await stopped(error_of(next)), std::errc::operation_canceled);
        EXPECT_EQ(co_await there.send_all("ly\n"), 3);
        EXPECT_EQ(co_await lines.next(), "partly"); // nothing was consumed
    }());
}

TEST(StreamLimits, OfReadExactAreResults) {
    run([]() -> task<> {
        auto [here, there] = net::socket::pair();
        reader r{here};
        char buf[8];
        EXPECT_EQ(co_await timeout(r.read_exact(buf), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await stopped(r.read_exact(buf)), -ECANCELED);
        EXPECT_EQ(co_await timeout(r.read_some(buf), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await there.send_all("1234"), 4);
        EXPECT_EQ(co_await there.close(), 0);
        EXPECT_EQ(co_await r.read_exact(buf), -ENODATA);
    }());
}

TEST(StreamLimits, AFailureOfTheStreamIsThrownByCallsThatReturnAView) {
    run([]() -> task<> {
        script_source until("", 1, 0);
        buffered_reader r{until};
        const auto call = [&] { return r.read_until('\n'); };
        EXPECT_EQ(co_await error_of(call), std::errc::io_error);
        script_source line("", 1, 0);
        buffered_reader q{line};
        auto lines = q.lines();
        const auto next = [&] { return lines.next(); };
        EXPECT_EQ(co_await error_of(next), std::errc::io_error);
        script_source exact("", 1, 0);
        buffered_reader e{exact};
        char buf[4];
        EXPECT_EQ(co_await e.read_exact(buf), -EIO);
        script_source long_line(std::string(100, 'x'));
        buffered_reader l{long_line};
        const auto too_long = [&] { return l.read_until('\n', 10); };
        EXPECT_EQ(co_await error_of(too_long), std::errc::message_size);
    }());
}

TEST(StreamLimits, TheEndReturnsTheRestAndThenNullopt) {
    run([]() -> task<> {
        script_source source("rest");
        buffered_reader r{source};
        EXPECT_EQ(co_await r.read_until('\n'), "rest");
        EXPECT_FALSE(r.delimited());
        EXPECT_EQ(co_await r.read_until('\n'), std::nullopt);
        auto lines = r.lines();
        EXPECT_EQ(co_await lines.next(), std::nullopt);
    }());
}

TEST(StreamLimits, OfABufferedWriterAreResults) {
    run([]() -> task<> {
        auto [here, there] = net::socket::pair();
        writer w{here};
        const std::string much(1 << 22, 'x'); // more than the socket takes
        EXPECT_EQ(co_await timeout(w.write(much), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await w.write("y"), 1); // it fits into the buffer
        EXPECT_EQ(co_await timeout(w.flush(), 5ms), -ETIMEDOUT);
        EXPECT_EQ(co_await stopped(w.flush()), -ECANCELED);
        EXPECT_EQ(w.pending(), 1U);
        const auto write = [](writer& to, const std::string& data) -> task<int> {
            co_return co_await to.write(data);
        };
        EXPECT_EQ(co_await stopped(write(w, much)), -ECANCELED);
        EXPECT_EQ(co_await there.close(), 0);
        EXPECT_EQ(co_await w.flush(), -EPIPE);
    }());
}

} // namespace
